// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <mutex>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <adasum/core/gram.hpp>
#include <adasum/core/optional_members.hpp>
#include <adasum/core/segments.hpp>
#include <adasum/core/weigh.hpp>
#include <adasum/detail/references/rule_ref.hpp>
#include <adasum/rules/adasum.hpp>
#include <adasum/rules/adasum_linear.hpp>
#include <adasum/rules/mean.hpp>
#include <adasum/rules/sum.hpp>

#include "support/eigen_scalars.hpp"
#include "support/oracle.hpp"
#include "support/random_gradients.hpp"
#include "support/tree_of_nodes.hpp"

/// What a combination of gradients is by its definition, in long double, without kernels, stages or messages.
namespace adasum::test {

/// Gradients of workers that look at different data: one direction in common, and as much noise of each one's own that no
/// rule's choice is close, and none of its weights follows from a small difference of large numbers.
template <scalar T>
std::vector<std::vector<T>> gradients_of_workers(std::size_t count, std::size_t length, std::uint64_t seed) {
  uniform_numbers uniform(seed);
  const auto common = uniform.vector(length);
  std::vector<std::vector<T>> gradients;
  for (std::size_t i = 0; i < count; ++i) {
    auto values = uniform.vector(length);
    for (std::size_t x = 0; x < length; ++x)
      values[x] = common[x] + (0.3 + 0.2 * static_cast<double>(i)) * values[x];
    gradients.push_back(from_doubles<T>(values));
  }
  return gradients;
}

/// The same ones, made once: that takes longer than most reductions of them.
template <scalar T>
const std::vector<std::vector<T>>& usual_gradients(std::size_t count, std::size_t length) {
  static std::mutex mutex;
  static std::map<std::pair<std::size_t, std::size_t>, std::vector<std::vector<T>>> made;
  const std::scoped_lock lock(mutex);
  auto& gradients = made[{count, length}];
  if (gradients.empty()) gradients = gradients_of_workers<T>(count, length, length);
  return gradients;
}

/// One segment of all gradients, or the whole of them, to be weighed at once.
struct defined_problem {
  std::vector<oracle_node> gradients;
  std::vector<bool> takes_part;
  std::vector<int> nodes;  ///< whose gradients are combined first; empty: no one's
  std::size_t segment = 0;

  std::size_t participants() const { return static_cast<std::size_t>(std::ranges::count(takes_part, true)); }
};

/// Gradients that take no part are zero, and are not counted.
template <class Rule>
std::vector<oracle_node> leaves_for_tree(const defined_problem& problem) {
  auto leaves = problem.gradients;
  for (std::size_t i = 0; i < leaves.size(); ++i)
    if (!problem.takes_part[i]) std::ranges::fill(leaves[i].value, real{0});
  return leaves;
}
template <class Rule, class Tree>
real_vector by_pairs(const Rule& rule, const defined_problem& problem, const Tree& tree) {
  auto result =
      tree(leaves_for_tree<Rule>(problem), [&](const auto& a, const auto& b) { return oracle_merge(rule, a, b); }).value;
  const auto all = static_cast<real>(problem.gradients.size()), some = static_cast<real>(problem.participants());
  if (std::is_same_v<Rule, rules::mean> && some > 0)
    for (auto& value : result) value *= all / some;
  return result;
}

inline real_vector defined(const rules::adasum& rule, const defined_problem& problem) {
  return by_pairs(rule, problem, tree_of_nodes{problem.nodes});
}
inline real_vector defined(const rules::sum& rule, const defined_problem& problem) {
  return by_pairs(rule, problem, tree_of_nodes{problem.nodes});
}
inline real_vector defined(const rules::mean& rule, const defined_problem& problem) {
  return by_pairs(rule, problem, tree_of_nodes{problem.nodes});
}
/// In the order ((0, 1), 2), 3 …
inline real_vector defined(const rules::adasum_linear&, const defined_problem& problem) {
  return by_pairs(rules::adasum{}, problem, [](const std::vector<oracle_node>& leaves, const auto& merge) {
    auto total = leaves.front();
    for (std::size_t i = 1; i < leaves.size(); ++i) total = merge(total, leaves[i]);
    return total;
  });
}
/// Σ cᵢ gᵢ with c = rule(G), G(i, j) = gᵢ·gⱼ. The weights are the rule's own: rules/reference.cpp and rules/eigen/reference.cpp
/// hold those to the rule's definition.
template <class Rule>
std::vector<double> defined_weights(Rule& rule, const defined_problem& problem) {
  std::vector<const real_vector*> some;
  for (std::size_t i = 0; i < problem.gradients.size(); ++i)
    if (problem.takes_part[i]) some.push_back(&problem.gradients[i].value);
  std::vector<double> gram, of_some(some.size()), weights(problem.gradients.size());
  for (std::size_t i = 0; i < some.size(); ++i)
    for (std::size_t j = 0; j <= i; ++j) gram.push_back(static_cast<double>(dot(*some[i], *some[j])));
  if (some.empty()) return weights;
  const gram_view view(gram.data(), some.size());
  if constexpr (requires { rule(view, std::span(of_some), problem.segment); })
    rule(view, std::span(of_some), problem.segment);
  else
    rule(view, std::span(of_some));
  for (std::size_t i = 0, at = 0; i < weights.size(); ++i)
    if (problem.takes_part[i]) weights[i] = of_some[at++];
  return weights;
}
inline real_vector mixed(const std::vector<double>& weights, const std::vector<oracle_node>& gradients) {
  real_vector result(gradients.front().value.size());
  for (std::size_t i = 0; i < gradients.size(); ++i)
    for (std::size_t x = 0; x < result.size() && weights[i] != 0; ++x)
      result[x] += static_cast<real>(weights[i]) * gradients[i].value[x];
  return result;
}

/// All segments of a gradient.
/// @param rule        as it was made, without state
/// @param gradients   of each one that is combined: a rank's, a replica's, or a node's
/// @param leaves      how many gradients each is made of
/// @param takes_part  takes_part(i, k): whether gradient i does in segment k
template <class Rule, class TakesPart>
real_vector definition_of(Rule rule, const std::vector<real_vector>& gradients, const std::vector<std::size_t>& leaves,
                          const segments& cut, const std::vector<int>& nodes, const TakesPart& takes_part) {
  const auto problem_of = [&](index_range elements, std::size_t k) {
    defined_problem problem{{}, {}, nodes, k};
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const auto begin = gradients[i].begin();
      problem.gradients.push_back({{begin + static_cast<std::ptrdiff_t>(elements.begin),
                                    begin + static_cast<std::ptrdiff_t>(elements.end)},
                                   leaves[i]});
      problem.takes_part.push_back(takes_part(i, k));
    }
    return problem;
  };
  if constexpr (!pairwise_rule<Rule>)
    if (detail::rule_ref(rule).weighs_whole_model()) {
      const auto whole = problem_of({0, cut.total()}, 0);
      return mixed(defined_weights(rule, whole), whole.gradients);
    }
  real_vector result;
  for (std::size_t k = 0; k < cut.size(); ++k) {
    const auto problem = problem_of(segments_view(cut).range(k), k);
    const auto part = [&] {
      if constexpr (pairwise_rule<Rule>)
        return defined(rule, problem);
      else
        return mixed(defined_weights(rule, problem), problem.gradients);
    }();
    result.insert(result.end(), part.begin(), part.end());
  }
  return result;
}

}  // namespace adasum::test
