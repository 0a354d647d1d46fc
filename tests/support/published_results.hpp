// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <vector>

#include "rule_checks.hpp"

/// Rules are compared with what other implementations make of the same gradients.
namespace adasum::test {

/// Four sets: two opposed gradients; three that agree; five; and five of different lengths, two of them opposed.
inline const std::array<std::vector<vec>, 4> compared_gradients{{
    {{0, 0.3, -0.27, -0.89, -0.45, -0.99}, {0.07, -0.83, 0.14, 1.02, -0.67, 0.27}},
    {{-1.9, -1.29, -1.84, -0.24, -1.27, 0.27},
     {0.16, -0.19, -2.52, -0.54, -0.05, 0.11},
     {-1.53, -0.48, -0.98, -0.81, 1.06, -0.81}},
    {{0.37, 1.28, -0.18, 0.29, 0.51, 0.46},
     {-0.83, 0.48, 1.76, -1.15, 1.26, 0.52},
     {-0.24, 2.4, 1.16, -0.8, 0.47, 0.98},
     {0.21, 1.08, 0.33, 1.07, 1.84, -0.28},
     {0.6, -0.06, 0.53, -0.79, -0.18, 0.2}},
    {{0.9, 1.15, -1.32, -0.79, 0.65, -1.99},
     {-4.6, -1, 12.6, 6.9, -3.3, -3.7},
     {-0.155, -0.098, 0.048, -0.023, -0.08, 0.154},
     {-0.6, -3.33, -0.03, -1.32, 3.51, 1.95},
     {-0.02, 0.67, -0.34, 1.05, -0.01, 0.58}},
}};

/// Checks the result for each of the four sets.
/// @param accuracy  relative to the norm of what is expected
template <class Rule>
void check_published(const Rule& rule, const std::array<vec, 4>& expected, double accuracy) {
  for (std::size_t k = 0; k < expected.size(); ++k) {
    CAPTURE(k);
    CHECK(distance(combined(Rule(rule), compared_gradients[k]), expected[k]) <= accuracy * norm_of(expected[k]));
  }
}

}  // namespace adasum::test
