// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "oracle.hpp"
#include "random_gradients.hpp"

/// Gradients of norms that are chosen.
namespace adasum::test {

template <class T>
using gradients_of = std::vector<std::vector<T>>;

/// The same directions with the given norms, one after the other and from the beginning again.
template <class T>
gradients_of<T> with_norms(std::size_t n, std::size_t length, const std::vector<double>& norms, gradient_kind kind,
                           std::uint64_t seed) {
  const auto directions = random_gradients<double>(n, length, seed, kind);
  gradients_of<T> gradients;
  const auto leaves = oracle_leaves(directions, {0, length});
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<double> values;
    for (const real x : leaves[i].value)
      values.push_back(static_cast<double>(x / leaves[i].mass * static_cast<real>(norms[i % norms.size()])));
    gradients.push_back(from_doubles<T>(values));
  }
  return gradients;
}

/// Norms, alike, in pairs, and from one end of the range to the other. Squares of doubles at 1e-150 and 1e150 are beyond
/// what inner products decide, those at 1e-119 and 1e119 are not.
template <class T>
std::vector<std::vector<double>> norms_under_test() {
  const std::vector<double> each = [] {
    switch (format_of<T>) {
      case number_format::binary64: return std::vector{1e-150, 1e-119, 1e-80, 1.0, 1e80, 1e119, 1e150};
      case number_format::binary16: return std::vector{1e-2, 1.0, 1e4};
      default: return std::vector{1e-36, 1e-30, 1e-10, 1.0, 1e9, 1e30, 1e37};
    }
  }();
  std::vector<std::vector<double>> all{{each.front(), 1, each.back()}};
  for (const double a : each)
    for (const double b : each) all.push_back(a == b ? std::vector{a} : std::vector{a, b});
  return all;
}

/// visit(gradients) for norms of every kind, and directions at wide angles and narrow ones.
template <class T, class Visitor>
void for_each_choice_of_norms(std::size_t n, std::size_t length, const Visitor& visit) {
  std::uint64_t seed = 0;
  for (const auto& norms : norms_under_test<T>())
    for (const auto kind : {gradient_kind::independent, gradient_kind::near_parallel}) {
      CAPTURE(norms.front());
      CAPTURE(norms.back());
      CAPTURE(std::string(to_string(kind)));
      visit(with_norms<T>(n, length, norms, kind, ++seed));
    }
}

}  // namespace adasum::test
