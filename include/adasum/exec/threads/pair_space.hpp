// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <concepts>
#include <cstddef>
#include <span>

#include "../../core/space_members.hpp"
#include "../serial.hpp"
#include "measure.hpp"
#include "mix.hpp"
#include "space.hpp"

namespace adasum {
namespace detail {

/// threads_space for at most two vectors at once, with the same results: a program that adds only pairs compiles half as
/// many kernels.
class threads_pair_space : public threads_space {
 public:
  explicit threads_pair_space(const threads_space& space) : threads_space(space), pair_kernels_(kernels()) {}

  template <scalar T>
  void measure(const slice& window, std::span<const T* const> vectors, double* gram) const {
    measure(window, vectors, gram, serial_space::bytes_of<T>(window, vectors.size()));
  }
  template <scalar T>
  void measure(const slice& window, std::span<const T* const> vectors, double* gram, std::size_t bytes) const {
    threads_backend::measure(team(), pair_kernels_.template kernels<T>(), false, window, serial::untyped(vectors),
                             vectors.size(), bytes, gram);
  }

  template <scalar T>
  void mix(const slice& window, std::span<const T* const> vectors, const double* weights, T* out) const {
    threads_backend::mix(team(), pair_kernels_.template kernels<T>(), window, serial::untyped(vectors), vectors.size(),
                         weights, out);
  }

  void measure_in_double() const = delete;  // see serial_pair_space
  void mix_in_double() const = delete;
  friend bool operator==(const threads_pair_space&, const threads_pair_space&) = default;

 private:
  serial_pair_space pair_kernels_;
};

}  // namespace detail

/// @cond internal
template <>
struct detail::own_caches<detail::threads_pair_space> : own_caches<threads_space> {};
template <>
struct detail::own_space_for_pairs<threads_space> {
  static threads_pair_space of(const threads_space& space) { return threads_pair_space(space); }
};
inline detail::serial_double_space for_recombining(const detail::threads_pair_space& space) {
  return for_recombining(serial_space(space.instructions()));
}
/// @endcond

}  // namespace adasum
