// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string_view>
#include <vector>

#include "scalars.hpp"

namespace adasum::test {

/// How the gradients of one test lie to each other.
enum class gradient_kind {
  independent,    ///< uniform in [-1, 1)
  near_parallel,  ///< one direction, and 1e-3 of noise
  duplicate,      ///< all the same
  opposed,        ///< each odd one is minus the one before it, and 1/64 of noise
  scaled,         ///< independent, times 1e-6, 1 or 1e+6 (half: 1/30, 1 or 30)
  low_rank,       ///< all in one plane
  with_zeros,     ///< every third one is zero
};

inline constexpr std::array all_gradient_kinds{
    gradient_kind::independent, gradient_kind::near_parallel, gradient_kind::duplicate,  gradient_kind::opposed,
    gradient_kind::scaled,      gradient_kind::low_rank,      gradient_kind::with_zeros,
};

constexpr std::string_view to_string(gradient_kind kind) {
  switch (kind) {
    case gradient_kind::independent: return "independent";
    case gradient_kind::near_parallel: return "near_parallel";
    case gradient_kind::duplicate: return "duplicate";
    case gradient_kind::opposed: return "opposed";
    case gradient_kind::scaled: return "scaled";
    case gradient_kind::low_rank: return "low_rank";
    case gradient_kind::with_zeros: return "with_zeros";
  }
  return "unknown";
}

/// Uniform in [-1, 1).
class uniform_numbers {
 public:
  explicit uniform_numbers(std::uint64_t seed) : bits_(seed) {}
  double operator()() { return static_cast<double>(bits_() >> 11) * 0x1p-52 - 1; }
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(bits_() % bound); }
  std::vector<double> vector(std::size_t length) {
    std::vector<double> values(length);
    for (double& value : values) value = (*this)();
    return values;
  }

 private:
  std::mt19937_64 bits_;
};

/// The same gradients for the same arguments, on every rank.
template <scalar T>
std::vector<std::vector<T>> random_gradients(std::size_t count, std::size_t length, std::uint64_t seed,
                                             gradient_kind kind = gradient_kind::independent) {
  uniform_numbers uniform(seed);
  const auto one = uniform.vector(length), other = uniform.vector(length);
  const double large = format_of<T> == number_format::binary16 ? 30 : 1e6;
  std::vector<std::vector<T>> gradients;
  std::vector<double> before;
  for (std::size_t i = 0; i < count; ++i) {
    auto values = uniform.vector(length);
    const double p = uniform(), q = uniform(), scale = std::array{1 / large, 1.0, large}[uniform.below(3)];
    for (std::size_t x = 0; x < length; ++x) {
      double& value = values[x];
      switch (kind) {
        case gradient_kind::independent: break;
        case gradient_kind::near_parallel: value = one[x] + 1e-3 * value; break;
        case gradient_kind::duplicate: value = one[x]; break;
        case gradient_kind::opposed: value = i % 2 == 0 ? value : -before[x] + value / 64; break;
        case gradient_kind::scaled: value *= scale; break;
        case gradient_kind::low_rank: value = p * one[x] + q * other[x]; break;
        case gradient_kind::with_zeros: value = i % 3 == 1 ? 0 : value; break;
      }
    }
    gradients.push_back(from_doubles<T>(values));
    before = std::move(values);
  }
  return gradients;
}

/// Lengths of segments that add up to `length`; about a third are empty, many are odd.
inline std::vector<std::size_t> random_segments(std::size_t length, std::size_t count, std::uint64_t seed) {
  uniform_numbers uniform(seed);
  std::vector<std::size_t> lengths(count);
  std::size_t left = length;
  for (std::size_t k = 0; k + 1 < count; ++k) {
    lengths[k] = uniform.below(3) == 0 ? 0 : uniform.below(std::min(left, 2 * length / count) + 1);
    left -= lengths[k];
  }
  if (count > 0) lengths.back() = left;
  return lengths;
}

}  // namespace adasum::test
