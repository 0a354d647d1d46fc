// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "definition.hpp"

namespace adasum::test {

/// These are the elements of the rule's combination, but for a few roundings to T of each gradient's.
template <scalar T, class Rule>
void check_near(std::span<const T> found, const std::vector<std::vector<T>>& gradients, const Rule& rule,
                const segments& cut) {
  std::vector<real_vector> all;
  for (const auto& gradient : gradients) {
    all.emplace_back();
    for (const T x : gradient) all.back().push_back(static_cast<real>(to_double(x)));
  }
  const auto expected = definition_of(rule, all, std::vector<std::size_t>(all.size(), 1), cut, {},
                                      [](std::size_t, std::size_t) { return true; });
  real square = 0, scale = 0;
  for (std::size_t x = 0; x < found.size(); ++x) {
    const auto off = static_cast<real>(to_double(found[x])) - expected[x];
    square += off * off;
  }
  for (const auto& gradient : all) scale += norm(gradient);
  CHECK(found.size() == cut.total());
  CHECK(std::sqrt(square) <= (8 * rounding_to<T>.unit + 1e-6L) * scale);
}

}  // namespace adasum::test
