// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <cstdint>

namespace adasum::detail::simulated {

/// Numbers that follow from a seed, the same everywhere (splitmix64: Steele, Lea, Flood, OOPSLA 2014).
class chance {
 public:
  explicit chance(std::uint64_t seed) : state_(seed) {}

  std::uint64_t bits() { return mixed(state_ += 0x9E3779B97F4A7C15u); }
  /// In [0, bound); 0 where that is empty.
  std::size_t below(std::size_t bound) { return bound > 1 ? static_cast<std::size_t>(bits() % bound) : 0; }
  bool one_in(std::size_t count) { return below(count) == 0; }

  static std::uint64_t mixed(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t state_;
};

}  // namespace adasum::detail::simulated
