// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <adasum/core/gradient.hpp>
#include <adasum/core/segments.hpp>
#include <adasum/rules/adasum.hpp>
#include <adasum/rules/mean.hpp>
#include <adasum/rules/sum.hpp>

#include "scalars.hpp"

/// What the library must compute, by another way: long double, vector by vector, straight from the definition. Nothing
/// of the library's arithmetic or of its tree is used here.
namespace adasum::test {

using real = long double;
using real_vector = std::vector<real>;

inline real dot(std::span<const real> a, std::span<const real> b) {
  real sum = 0;
  for (std::size_t x = 0; x < a.size(); ++x) sum += a[x] * b[x];
  return sum;
}

inline real norm(std::span<const real> a) { return std::sqrt(dot(a, a)); }

/// The factors of a and b in adasum(a, b).
inline std::pair<real, real> oracle_weights(rules::adasum, const real_vector& a, const real_vector& b, std::size_t,
                                            std::size_t) {
  const real aa = dot(a, a), bb = dot(b, b), ab = dot(a, b);
  return {aa > 0 ? 1 - ab / (2 * aa) : 1, bb > 0 ? 1 - ab / (2 * bb) : 1};
}
inline std::pair<real, real> oracle_weights(rules::sum, const real_vector&, const real_vector&, std::size_t,
                                            std::size_t) {
  return {1, 1};
}
inline std::pair<real, real> oracle_weights(rules::mean, const real_vector&, const real_vector&, std::size_t leaves_a,
                                            std::size_t leaves_b) {
  const auto all = static_cast<real>(leaves_a + leaves_b);
  return {static_cast<real>(leaves_a) / all, static_cast<real>(leaves_b) / all};
}

/// A combination of some gradients, with what error analysis needs (see oracle_errors.hpp).
struct oracle_node {
  real_vector value;
  std::size_t leaves = 1;
  real mass = 0;            ///< Σ|cᵢ|‖gᵢ‖ over its gradients
  real gram_error = 0;      ///< bounds ‖computed − value‖ when its weights come from the Gram matrix of all leaves
  real pairwise_error = 0;  ///< the same when it is made pair by pair, with each result stored
};

/// The tree over a prime number of nodes: the first 2(n − 2^k) are paired, 2^k being the largest power of two <= n, and
/// then neighbours are paired until one is left.
template <class Merge>
oracle_node oracle_tree_of_prime(std::vector<oracle_node> nodes, Merge merge) {
  if (nodes.size() == 1) return nodes.front();
  std::size_t power = 1;
  while (2 * power <= nodes.size()) power *= 2;
  const std::size_t pairs = power == nodes.size() ? power / 2 : nodes.size() - power;
  std::vector<oracle_node> parents;
  for (std::size_t i = 0; i < nodes.size(); i += i < 2 * pairs ? 2 : 1)
    parents.push_back(i < 2 * pairs ? merge(nodes[i], nodes[i + 1]) : nodes[i]);
  return oracle_tree_of_prime(std::move(parents), merge);
}

/// The tree over any number of nodes: with its smallest prime factor p, each p neighbours become one, and so on.
template <class Merge>
oracle_node oracle_tree(std::vector<oracle_node> nodes, Merge merge) {
  if (nodes.size() == 1) return nodes.front();
  std::size_t p = 2;
  while (nodes.size() % p != 0) ++p;
  std::vector<oracle_node> parents;
  for (auto first = nodes.begin(); first != nodes.end(); first += static_cast<std::ptrdiff_t>(p))
    parents.push_back(oracle_tree_of_prime({first, first + static_cast<std::ptrdiff_t>(p)}, merge));
  return oracle_tree(std::move(parents), merge);
}

template <class Rule>
oracle_node oracle_merge(Rule rule, const oracle_node& a, const oracle_node& b) {
  const auto [wa, wb] = oracle_weights(rule, a.value, b.value, a.leaves, b.leaves);
  oracle_node merged{real_vector(a.value.size()), a.leaves + b.leaves};
  for (std::size_t x = 0; x < a.value.size(); ++x) merged.value[x] = wa * a.value[x] + wb * b.value[x];
  merged.mass = std::abs(wa) * a.mass + std::abs(wb) * b.mass;
  return merged;
}

/// One segment of every gradient, as leaves.
template <gradient_list Gradients>
std::vector<oracle_node> oracle_leaves(const Gradients& gradients, index_range segment) {
  std::vector<oracle_node> leaves;
  for (const auto& gradient : gradients) {
    oracle_node leaf;
    for (std::size_t x = segment.begin; x < segment.end; ++x)
      leaf.value.push_back(static_cast<real>(to_double(gradient[x])));
    leaf.mass = norm(leaf.value);
    leaves.push_back(std::move(leaf));
  }
  return leaves;
}

/// The combination of the gradients under rules::adasum, sum or mean, segment by segment. @pre finite gradients
template <class Rule, gradient_list Gradients>
real_vector oracle_combine(Rule rule, const Gradients& gradients, segments_view segments) {
  real_vector result;
  for (std::size_t k = 0; k < segments.size(); ++k) {
    const auto root = oracle_tree(oracle_leaves(gradients, segments.range(k)),
                                  [&](const auto& a, const auto& b) { return oracle_merge(rule, a, b); });
    result.insert(result.end(), root.value.begin(), root.value.end());
  }
  return result;
}

}  // namespace adasum::test
