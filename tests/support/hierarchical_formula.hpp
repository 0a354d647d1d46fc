// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include <adasum/combine.hpp>
#include <adasum/core/segments.hpp>
#include <adasum/exec/serial.hpp>

#include "scalars.hpp"

namespace adasum::test {

/// What schedules::hierarchical must compute, in double: rule over the nodes of (inner over the gradients of a node's
/// ranks). Nodes are ordered by their lowest ranks.
template <class Inner, class Rule, scalar T>
std::vector<double> hierarchical_formula(const segments& segs, const std::vector<int>& node_of_rank, const Inner& inner,
                                         const Rule& rule, const std::vector<std::vector<T>>& gradients) {
  std::vector<int> nodes;
  for (const int node : node_of_rank)
    if (std::ranges::find(nodes, node) == nodes.end()) nodes.push_back(node);
  const serial_space exec;
  std::vector<std::vector<double>> of_nodes;
  for (const int node : nodes) {
    std::vector<std::vector<double>> members;
    for (std::size_t r = 0; r < gradients.size(); ++r)
      if (node_of_rank[r] == node) {
        members.emplace_back();
        for (const T x : gradients[r]) members.back().push_back(to_double(x));
      }
    of_nodes.emplace_back(segs.total());
    combine(exec, members, of_nodes.back(), inner, segs);
  }
  std::vector<double> out(segs.total());
  combine(exec, of_nodes, out, rule, segs);
  return out;
}

/// Each of at most log₂P + 1 levels rounds its terms and their sum once to T; weights of gradients like these, at wide
/// angles, change by as much. Measured against the norms that go in, 40 roundings are ample and a wrong weight is not.
template <scalar T>
void check_close(const segments& segs, std::span<const T> got, const std::vector<double>& expected,
                 const std::vector<std::vector<T>>& gradients) {
  for (std::size_t k = 0; k < segs.size(); ++k) {
    double error = 0, largest = 0;
    for (auto x = segs.offset(k); x < segs.offset(k) + segs.length(k); ++x) {
      error = std::max(error, std::abs(to_double(got[x]) - expected[x]));
      double mass = 0;
      for (const auto& gradient : gradients) mass += std::abs(to_double(gradient[x]));
      largest = std::max(largest, mass);
    }
    CHECK(error <= 40 * static_cast<double>(rounding_to<T>.unit) * largest);
  }
}

}  // namespace adasum::test
