// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace adasum::rules {

/// @cond internal
/// Which value is the smallest, which the next, and so on. Of equal values, the one with the lower index comes first.
inline std::vector<std::size_t> ascending_order(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [values](std::size_t i, std::size_t j) { return values[i] < values[j]; });
  return order;
}
/// @endcond

/// Random orders that are the same on every rank, platform and standard library: they follow from a seed, the number of the
/// call and that of the segment.
///
/// The bits are those of SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA
/// 2014), which starts at m(m(seed) ⊕ call) ⊕ segment, m(s) being its first number from s. An order comes from
/// 0, 1, …, n - 1 by the shuffle of Fisher and Yates: for k = n - 1, …, 1, entry k changes places with entry (next mod k + 1).
class shared_order {
 public:
  /// Of this call for this segment.
  shared_order(std::uint64_t seed, std::uint64_t call, std::uint64_t segment)
      : state_(first_from(first_from(seed) ^ call) ^ segment) {}

  /// The next order of 0, 1, …, n - 1.
  std::vector<std::size_t> operator()(std::size_t n) {
    std::vector<std::size_t> order(n);
    for (std::size_t k = 0; k < n; ++k) order[k] = k;
    for (std::size_t k = n; k-- > 1;) std::swap(order[k], order[static_cast<std::size_t>(next(state_) % (k + 1))]);
    return order;
  }

 private:
  static constexpr std::uint64_t next(std::uint64_t& state) {
    state += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  static constexpr std::uint64_t first_from(std::uint64_t state) { return next(state); }

  std::uint64_t state_;
};

/// How often a rule has been called for each segment. @return how often before this call
inline std::uint64_t count_call(std::vector<std::uint64_t>& calls, std::size_t segment) {
  if (calls.size() <= segment) calls.resize(segment + 1);
  return calls[segment]++;
}

}  // namespace adasum::rules
