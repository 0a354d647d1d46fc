// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <adasum/adasum.hpp>

#include "../support/oracle.hpp"
#include "../support/oracle_errors.hpp"
#include "carry_out.hpp"
#include "input.hpp"
#include "order.hpp"

namespace adasum::fuzz {

/// What the definition gives for the gradients of all ranks, which are small whole numbers, in long double, and how far each
/// segment of a result may be from it.
struct expectation {
  std::vector<std::size_t> lengths;
  test::real_vector values;
  std::vector<test::real> bounds;
};

namespace detail_expected {

/// The gradients' mean on each node, the nodes in the order of their lowest ranks.
inline std::vector<std::vector<double>> means_of_nodes(const std::vector<std::vector<double>>& gradients,
                                                       const std::vector<int>& nodes) {
  const node_groups groups(nodes);
  std::vector<std::vector<double>> means;
  for (std::size_t node = 0; node < groups.size(); ++node) {
    std::vector<double> mean(gradients.front().size());
    for (const int rank : groups.ranks(node))
      for (std::size_t x = 0; x < mean.size(); ++x)
        mean[x] += gradients[static_cast<std::size_t>(rank)][x] / static_cast<double>(groups.ranks(node).size());
    means.push_back(std::move(mean));
  }
  return means;
}

/// The tree of each node's gradients, and then that of the nodes.
struct tree_by_node {
  const std::vector<int>& nodes;

  template <class Merge>
  test::oracle_node operator()(const std::vector<test::oracle_node>& leaves, const Merge& merge) const {
    const node_groups groups(nodes);
    std::vector<test::oracle_node> of_nodes;
    for (std::size_t node = 0; node < groups.size(); ++node) {
      std::vector<test::oracle_node> members;
      for (const int rank : groups.ranks(node)) members.push_back(leaves[static_cast<std::size_t>(rank)]);
      of_nodes.push_back(test::oracle_tree(std::move(members), merge));
    }
    return test::oracle_tree(std::move(of_nodes), merge);
  }
};

template <scalar T>
test::bounded_oracle oracle_of(const order& one, const std::vector<std::vector<double>>& gradients,
                               const segments& cut) {
  if (one.what == call::by_rule && one.rule == 0) return test::oracle_with_errors<T>(rules::mean{}, gradients, cut);
  if (one.what == call::by_rule) return test::oracle_with_errors<T>(rules::sum{}, gradients, cut);
  if (one.what != call::by_node) return test::oracle_with_errors<T>(rules::adasum{}, gradients, cut);
  if (one.inner_is_mean) return test::oracle_with_errors<T>(rules::adasum{}, means_of_nodes(gradients, one.nodes), cut);
  return test::oracle_with_errors<T>(rules::adasum{}, gradients, cut, tree_by_node{one.nodes});
}

}  // namespace detail_expected

/// @pre is_good(one, gradients.size()), and its rule is adasum, mean or sum
template <scalar T>
expectation expect(const order& one, const std::vector<std::vector<double>>& gradients) {
  using test::real;
  expectation found;
  if (one.lengths.empty())
    found.lengths.push_back(one.length);
  else
    found.lengths.assign(one.lengths.begin(), one.lengths.end());
  const segments cut(found.lengths);
  const auto oracle = detail_expected::oracle_of<T>(one, gradients, cut);
  found.values = oracle.values;
  const real unit = test::rounding_to<T>.unit;
  const real wire = one.choices.wire == wire_format::bfloat16   ? 0x1p-9L
                    : one.choices.wire == wire_format::binary16 ? 0x1p-12L
                                                                : 0;
  for (std::size_t k = 0; k < cut.size(); ++k) {
    real mass = 0;
    for (const auto& leaf : test::oracle_leaves(gradients, segments_view(cut).range(k))) mass += leaf.mass;
    const auto elements = std::sqrt(static_cast<real>(found.lengths[k]));
    // Means of a node are rounded once; a vector is rounded for a message at each of at most three levels, and once on its way
    // back. Each moves the result by as much as a sum of the vectors, and once more by way of the weights. Weights of 2 and a
    // step from them are rounded together.
    found.bounds.push_back(oracle.gram_error[k] + oracle.pairwise_error[k] + 16 * (unit + wire) * mass +
                           (one.what == call::delta ? 4 * unit * (2 * elements + mass) : 0) +
                           (wire > 0 ? 16 * 0x1p-25L * elements : 0));
  }
  return found;
}

/// Nothing is said of what lies outside one.valid.
inline void require_as_expected(const outcome& one, const expectation& expected) {
  require(one.values.size() == expected.values.size(), "the result has the gradient's length");
  std::size_t x = 0;
  for (std::size_t k = 0; k < expected.lengths.size(); ++k) {
    test::real_vector difference;
    for (const auto end = x + expected.lengths[k]; x < end; ++x)
      if (one.valid.begin <= x && x < one.valid.end)
        difference.push_back(static_cast<test::real>(one.values[x]) - expected.values[x]);
    require(test::norm(difference) <= expected.bounds[k], "the result is that of one process");
  }
}

}  // namespace adasum::fuzz
