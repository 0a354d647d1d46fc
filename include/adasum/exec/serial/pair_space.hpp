// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <concepts>
#include <cstddef>
#include <span>

#include "../../core/gram.hpp"
#include "elements.hpp"
#include "prefetch.hpp"
#include "space.hpp"

namespace adasum {
namespace detail {

/// serial_space for at most two vectors at once, with the same results: a program that adds only pairs compiles half as
/// many kernels.
class serial_pair_space : public serial_space {
 public:
  explicit serial_pair_space(const serial_space& space) : serial_space(space) {}

  template <scalar T>
  void measure(const slice& window, std::span<const T* const> vectors, double* gram) const {
    measure(window, vectors, gram, bytes_of<T>(window, vectors.size()));
  }
  template <scalar T>
  void measure(const slice& window, std::span<const T* const> vectors, double* gram, std::size_t bytes) const {
    const bool from_memory = serial::come_from_memory(bytes);
    const bool alone =
        vectors.size() == 1;  // only where a pair is combined directly, which is rare: a pair with itself
    const auto measure_short =
        measure_short_pairs(window, vectors[0], vectors[alone ? 0 : 1], packed_size(vectors.size()), gram);
    const T* some[2] = {};
    const auto measure_piece = [&](const T* const* at, std::size_t length, double* sums) {
      const T* const pair[] = {at[0], at[alone ? 0 : 1]};
      double pair_sums[packed_size(2)] = {};
      serial::run<serial::measure_few<2, T>>(instructions(), static_cast<const T* const*>(pair), length, from_memory,
                                             alone ? static_cast<double*>(pair_sums) : sums, std::size_t{0});
      if (alone) sums[0] = pair_sums[0];
    };
    measure_pieces(window, vectors, gram, static_cast<const T**>(some), measure_short, measure_piece);
  }

  template <scalar T>
  void mix(const slice& window, std::span<const T* const> vectors, const double* weights, T* out) const {
    mix(window, vectors, weights, out, bytes_of<T>(window, vectors.size()));
  }
  template <scalar T>
  void mix(const slice& window, std::span<const T* const> vectors, const double* weights, T* out,
           std::size_t bytes) const {
    const bool from_memory = serial::come_from_memory(bytes_of<T>(window, vectors.size()));
    const bool past_caches = writes_past_caches<T>(vectors, out, bytes);
    const T* some[2];
    double nonzero[2];
    mix_pieces(window, vectors, weights, out, static_cast<const T**>(some), static_cast<double*>(nonzero),
               [&](const T* const* at, std::size_t n, const double* w, std::size_t length, T* to) {
                 mix_few(at, n, w, length, from_memory, past_caches, to);
               });
    if (past_caches) serial::fence_bypassing_stores();
  }

  void mix_in_double() const = delete;  // two vectors are no groups: nothing of that is to be compiled
};

}  // namespace detail

/// @cond internal
/// See core/concepts.hpp. A class derived from serial_space may have replaced some of it, so it stands for itself.
template <std::same_as<serial_space> Space>
detail::serial_pair_space for_pairs(const Space& space) {
  return detail::serial_pair_space(space);
}
/// @endcond

}  // namespace adasum
