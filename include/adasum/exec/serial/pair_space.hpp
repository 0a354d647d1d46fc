// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <concepts>
#include <cstddef>
#include <span>

#include "../../core/scalar.hpp"
#include "../../core/segments.hpp"
#include "../../core/space_members.hpp"
#include "kernels.hpp"
#include "space.hpp"

namespace adasum {
namespace detail {

/// serial_space for at most two vectors at once, with the same results: a program that adds only pairs holds half as many
/// kernels.
class serial_pair_space : public serial_space {
 public:
  explicit serial_pair_space(const serial_space& space) : serial_space(space) {}

  template <scalar T>
  void measure(const slice& window, std::span<const T* const> vectors, double* gram) const {
    measure(window, vectors, gram, bytes_of<T>(window, vectors.size()));
  }
  template <scalar T>
  void measure(const slice& window, std::span<const T* const> vectors, double* gram, std::size_t bytes) const {
    windows::measure_pair(pairs<T>(), window, serial::untyped(vectors), vectors.size(), bytes, gram);
  }
  template <scalar T>
  void mix(const slice& window, std::span<const T* const> vectors, const double* weights, T* out) const {
    mix(window, vectors, weights, out, bytes_of<T>(window, vectors.size()));
  }
  template <scalar T>
  void mix(const slice& window, std::span<const T* const> vectors, const double* weights, T* out,
           std::size_t bytes) const {
    windows::mix_pair(pairs<T>(), window, serial::untyped(vectors), vectors.size(), weights, bytes, out);
  }
  // Two vectors are no groups, and adasum_pair needs no better inner products: nothing of that is to be compiled.
  void measure_in_double() const = delete;
  void mix_in_double() const = delete;
  friend bool operator==(const serial_pair_space&, const serial_pair_space&) = default;


 private:
  template <scalar T>
  const serial::pair_kernels& pairs() const {
    return tables<T>::pairs[place()];
  }
};

}  // namespace detail

/// @cond internal
template <>
inline constexpr std::size_t detail::own_round_bytes<detail::serial_pair_space> = own_round_bytes<serial_space>;
template <>
struct detail::own_space_for_pairs<serial_space> {
  static serial_pair_space of(const serial_space& space) { return serial_pair_space(space); }
};
/// @endcond

}  // namespace adasum
