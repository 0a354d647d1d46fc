// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "concepts.hpp"
#include "gram.hpp"
#include "optional_members.hpp"
#include "tree_order.hpp"
#include "weighing.hpp"

/// From a Gram matrix and a rule to the weights of one segment. Pure: numbers in, numbers out.
///
/// A short vector beside a long one has a weight as large as the ratio of their norms, the square of which may be out of
/// double's range. So a term of a quadratic form is wᵢ·Gᵢⱼ·wⱼ, from left to right: each of its factors brings the other
/// back to the size of the vectors that are added.
namespace adasum::detail {

/// Those for many vectors of doubles.
inline constexpr weighing_limits usual_limits = limits_for(number_format::binary64, 3, true);

/// What weigh_along_tree keeps of the nodes of the tree: room for n of each, found at the node's first leaf.
struct tree_nodes {
  double* norm2;        ///< squared norm
  double* mass;         ///< Σ cᵢ² Gᵢᵢ
  std::size_t* leaves;  ///< gradients in it
};

/// What becomes of a node that has cancelled beyond the threshold.
enum class cancelled_node {
  needs_vectors,  ///< the answer is weighing::needs_vectors
  is_zero,        ///< it is weighed as zero: for where nobody can look at the vectors again
};

/// Reusable room for weigh(), for up to the given number of vectors; two need none.
struct weigh_scratch {
  explicit weigh_scratch(std::size_t n = 0) : norm2(n), mass(n), leaves(n), gram(packed_size(n)), weights(n) {}
  operator tree_nodes() { return {norm2.data(), mass.data(), leaves.data()}; }

  std::vector<double> norm2, mass;
  std::vector<std::size_t> leaves;
  std::vector<double> gram;               // Gram matrix of some of the vectors, or of all segments together
  std::vector<double> squared_distances;  // of some of the vectors, where they have been measured
  std::vector<double> weights;            // their weights
};

/// Calls visit(first, middle, last) in the order in which a pairwise rule is applied to n vectors.
ADASUM_CALLS_ITS_ARGUMENT template <class Rule, class Visitor>
ADASUM_HOST_DEVICE constexpr void for_each_merge_under(const Rule&, std::size_t n, Visitor&& visit) {
  if constexpr (tree_rule<Rule>)
    for_each_merge(n, visit);
  else
    for_each_left_fold(n, visit);
}

/// Whether the rule looks at inner products.
template <class Rule>
ADASUM_HOST_DEVICE constexpr bool looks_at_gram(const Rule&) {
  return needs_gram<Rule>;
}

/// The work of weigh_along_tree. A class, because nvcc heeds ADASUM_CALLS_ITS_ARGUMENT on functions, not on lambdas.
template <class Rule>
struct tree_weighing {
  Rule& rule;
  gram_view gram;
  double* weights;
  tree_nodes nodes;
  weighing_limits limits;
  cancelled_node policy;
  weighing quality = weighing::good;

  /// The node of the leaves [first, last) is complete.
  ADASUM_CALLS_ITS_ARGUMENT
  ADASUM_HOST_DEVICE constexpr void settle(std::size_t first, std::size_t last, double limit) {
    if (!looks_at_gram(rule) || !(nodes.norm2[first] < limit * nodes.mass[first])) return;
    if (policy == cancelled_node::needs_vectors) {
      quality = weighing::needs_vectors;
      return;
    }
    for (auto i = first; i < last; ++i) weights[i] = 0;
    nodes.norm2[first] = nodes.mass[first] = 0;
  }

  /// Combines the node of the leaves [first, middle) with that of [middle, last).
  ADASUM_CALLS_ITS_ARGUMENT
  ADASUM_HOST_DEVICE constexpr void operator()(std::size_t first, std::size_t middle, std::size_t last) {
    settle(first, middle, limits.node);
    settle(middle, last, limits.node);
    double dot = 0;
    for (auto j = middle; j < last; ++j) {
      const double* const row = gram.row(j);
      double sum = 0;  // of each row by itself, so that an addition need not wait for all those before
      for (auto i = first; i < middle; ++i) sum += weights[i] * row[i] * weights[j];
      dot += sum;
    }
    const double aa = nodes.norm2[first], bb = nodes.norm2[middle];
    const pair_weights w = rule(pair_gram{aa, dot, bb, nodes.leaves[first], nodes.leaves[middle]});
    for (auto i = first; i < middle; ++i) weights[i] *= w.a;
    for (auto j = middle; j < last; ++j) weights[j] *= w.b;
    const double norm2 = w.a * aa * w.a + 2 * (w.a * dot * w.b) + w.b * bb * w.b;
    nodes.norm2[first] = norm2 > 0 ? norm2 : 0;
    nodes.mass[first] = w.a * nodes.mass[first] * w.a + w.b * nodes.mass[middle] * w.b;
    nodes.leaves[first] += nodes.leaves[middle];
  }
};

/// Weights of n vectors under a pairwise rule along its tree, from inner products alone: a node is Σ cᵢ gᵢ, so its
/// moments are quadratic forms in G. O(n²), since the supports of two children are disjoint.
///
/// @param leaves     how many gradients each vector already combines
/// @param weights    receives one for each vector
/// @param limits     see limits_for
ADASUM_CALLS_ITS_ARGUMENT template <class Rule>
ADASUM_HOST_DEVICE constexpr weighing weigh_along_tree(Rule& rule, gram_view gram, const std::size_t* leaves,
                                                       double* weights, tree_nodes nodes,
                                                       const weighing_limits& limits = usual_limits,
                                                       cancelled_node policy = cancelled_node::needs_vectors) {
  const auto n = gram.size();
  for (std::size_t i = 0; i < n; ++i) {
    weights[i] = 1;
    nodes.norm2[i] = nodes.mass[i] = gram(i, i);
    nodes.leaves[i] = leaves[i];
  }
  tree_weighing<Rule> state{rule, gram, weights, nodes, limits, policy};
  for_each_merge_under(rule, n, state);
  state.settle(0, n, limits.root);
  return state.quality;
}

/// Whether a squared distance from inner products is less than 2⁻²⁴ of the squares that it is the difference of, so
/// that their errors, a few times 2⁻⁵³, take all but eight of its digits; the same share that nodes of a tree are held
/// to.
constexpr bool distance_cancels(gram_view gram, std::size_t i, std::size_t j) {
  return gram.squared_distance(i, j) < 0x1p-24 * (gram(i, i) + gram(j, j));
}

/// Whether that holds for any two of the vectors that take part (leaves[i] > 0).
inline bool any_distance_cancels(gram_view gram, std::span<const std::size_t> leaves) {
  for (std::size_t i = 0; i < gram.size(); ++i)
    for (std::size_t j = 0; leaves[i] != 0 && j < i; ++j)
      if (leaves[j] != 0 && distance_cancels(gram, i, j)) return true;
  return false;
}

/// ‖Σ wᵢ gᵢ‖² from inner products; clamped at 0. A vector of weight 0 may hold Inf or NaN.
inline double squared_norm(gram_view gram, std::span<const double> weights) {
  double sum = 0;
  for (std::size_t i = 0; i < gram.size(); ++i) {
    if (is_zero(weights[i])) continue;
    const double* const row = gram.row(i);
    double products = 0;
    for (std::size_t j = 0; j < i; ++j)
      if (!is_zero(weights[j])) products += weights[i] * row[j] * weights[j];
    sum += weights[i] * row[i] * weights[i] + 2 * products;
  }
  return is_nan(sum) ? sum : std::max(0.0, sum);
}

}  // namespace adasum::detail
