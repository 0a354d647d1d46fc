// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "../core/concepts.hpp"
#include "../core/gram.hpp"
#include "../core/optional_members.hpp"

namespace adasum::detail {

/// A rule for pairs, of any type.
struct pairwise_rule_of_any_type {
  void* rule;
  pair_weights (*call)(void* rule, const pair_gram& gram);
  bool follows_tree, looks_at_gram;

  pair_weights operator()(const pair_gram& gram) const { return call(rule, gram); }
};

/// Gradients that have been replaced by means of those nearest to them: rules::nearest_neighbour_mixing for any rule.
class mixed_gradients {
 public:
  /// @param gram       of the gradients as they were
  /// @param byzantine  as many are not taken, at most n - 1
  mixed_gradients(gram_view gram, std::size_t byzantine, bool needs_distances);

  /// Of the mixed ones.
  gram_view gram() const;
  /// Their weights, which a rule writes.
  std::span<double> weights();
  /// The weights that a rule for pairs gives them along its tree.
  void weigh(const pairwise_rule_of_any_type& rule);
  /// The same combination as one of the gradients themselves.
  void weigh_unmixed(std::span<double> weights) const;

 private:
  std::span<const std::size_t> nearest(std::size_t i) const;

  std::size_t n_, kept_;
  std::vector<std::size_t> nearest_;  // of each gradient the n - f nearest, itself included, ascending
  std::vector<double> products_, distances_, weights_;
};

}  // namespace adasum::detail

namespace adasum::rules {

/// Any rule, applied after each gradient has been replaced by the mean of the n - f gradients nearest to it, itself
/// included (NNM). It makes robust rules robust also where the honest ranks' data differ; up to f ranks may send
/// anything, even Inf and NaN: a gradient that holds these is left out.
///
///     M(i, j) = 1/(n-f) if gⱼ is among the n - f nearest to gᵢ, else 0;   c = Mᵀ c',   c' by the rule from M G Mᵀ
///
/// Source: Allouah et al., "Fixing by Mixing: A Recipe for Optimal Byzantine ML under Heterogeneity", AISTATS 2023,
/// section 4, algorithm 2. Distances are found as for multi_krum, those of the mixed gradients, too, if the rule compares
/// them: ‖Mᵢg - Mⱼg‖² = E(i, j) - (E(i, i) + E(j, j))/2, where E = M D Mᵀ and D holds the squared distances. Of equal
/// distances, the lower index wins.
///
/// A rule for pairs (adasum, mean) is applied along the tree, as without mixing. Whether it is applied to the whole model
/// or to each segment, its degree, state and fallbacks are the rule's; one that does not say is applied to the whole
/// model. The weights change by jumps where neighbours change. The mixed gradients' inner products have errors of
/// about 1e-15 times the squares of the gradients mixed. O(n³), in addition to the rule.
template <rule Rule>
struct nearest_neighbour_mixing {
 private:
  static constexpr std::string_view prefix = "nnm_", rule_name = [] {
    if constexpr (std::is_member_pointer_v<decltype(&Rule::name)>)
      return "rule";  // of which only an object knows the name
    else
      return Rule::name;
  }();
  static constexpr auto text = [] {
    std::array<char, prefix.size() + rule_name.size()> both{};
    for (std::size_t i = 0; i < both.size(); ++i)
      both[i] = i < prefix.size() ? prefix[i] : rule_name[i - prefix.size()];
    return both;
  }();

 public:
  static constexpr std::string_view name{text.data(), text.size()};  ///< "nnm_" and the rule's
  static constexpr inner_products needs = inner_products::distances;
  static constexpr bool leaves_out_nonfinite = true;

  std::size_t byzantine = 0;  ///< f; at most n - 1 is taken
  Rule rule{};                ///< what combines the mixed gradients
  std::size_t fallbacks = 0;  ///< the rule's

  bool whole_model() const {
    if constexpr (requires { rule.whole_model(); })
      return rule.whole_model();
    else
      return true;
  }
  int degree() const { return degree_of(rule); }
  std::vector<double> parameters() const {
    return with_parameters_of(rule, [&](std::span<const double> inner) {
      std::vector<double> all{static_cast<double>(byzantine)};
      for (const double one : inner) all.push_back(one);
      return all;
    });
  }

  void operator()(gram_view g, std::span<double> weights, std::size_t segment) {
    detail::mixed_gradients mixed(g, byzantine, ::adasum::needs_distances<Rule>);
    if constexpr (pairwise_rule<Rule>)
      mixed.weigh({&rule,
                   [](void* any, const pair_gram& pair) -> pair_weights { return (*static_cast<Rule*>(any))(pair); },
                   tree_rule<Rule>, needs_gram<Rule>});
    else if constexpr (requires { rule(g, weights, segment); })
      rule(mixed.gram(), mixed.weights(), segment);
    else
      rule(mixed.gram(), mixed.weights());
    fallbacks = fallbacks_of(rule);
    mixed.weigh_unmixed(weights);
  }
};

}  // namespace adasum::rules

#if ADASUM_DEFINITIONS
#include <algorithm>

#include "../core/weigh.hpp"
#include "orders.hpp"

namespace adasum::detail {

inline void for_each_merge_under(const pairwise_rule_of_any_type& rule, std::size_t n, auto&& visit) {
  if (rule.follows_tree)
    for_each_merge(n, visit);
  else
    for_each_left_fold(n, visit);
}
inline bool looks_at_gram(const pairwise_rule_of_any_type& rule) { return rule.looks_at_gram; }

ADASUM_INLINE mixed_gradients::mixed_gradients(gram_view gram, std::size_t byzantine, bool needs_distances)
    : n_(gram.size()), kept_(n_ - std::min(byzantine, n_ - 1)), nearest_(n_ * kept_), weights_(n_) {
  std::vector<double> squares(n_);
  for (std::size_t i = 0; i < n_; ++i) {
    for (std::size_t j = 0; j < n_; ++j) squares[j] = j == i ? -1 : gram.squared_distance(i, j);
    auto order = rules::ascending_order(squares);
    order.resize(kept_);
    std::sort(order.begin(), order.end());  // the same neighbours have the same mean, to the last bit
    std::copy(order.begin(), order.end(), nearest_.begin() + static_cast<std::ptrdiff_t>(i * kept_));
  }

  // M A Mᵀ, packed, of a symmetric A.
  const auto between_means = [this](const auto& a) {
    const auto count = static_cast<double>(kept_);
    std::vector<double> rows(n_ * n_), packed(packed_size(n_));
    for (std::size_t i = 0; i < n_; ++i)
      for (std::size_t j = 0; j < n_; ++j) {
        double sum = 0;
        for (const auto k : nearest(i)) sum += a(k, j);
        rows[i * n_ + j] = sum / count;
      }
    for (std::size_t i = 0; i < n_; ++i)
      for (std::size_t j = 0; j <= i; ++j) {
        double sum = 0;
        for (const auto k : nearest(j)) sum += rows[i * n_ + k];
        packed[packed_index(i, j)] = sum / count;
      }
    return packed;
  };
  products_ = between_means(gram);
  for (std::size_t i = 0; i < n_; ++i) {
    double& square = products_[packed_index(i, i)];
    square = std::max(square, 0.0);
  }
  if (!needs_distances) return;
  distances_ = between_means([&](std::size_t i, std::size_t j) { return gram.squared_distance(i, j); });
  for (std::size_t i = n_; i-- > 0;)  // from the end: a row asks for the diagonal of those before it
    for (std::size_t j = 0; j <= i; ++j) {
      const double own = distances_[packed_index(i, i)] + distances_[packed_index(j, j)];
      double& square = distances_[packed_index(i, j)];
      const bool same = std::equal(nearest(i).begin(), nearest(i).end(), nearest(j).begin());
      square = same ? 0 : std::max(0.0, square - own / 2);
    }
}

ADASUM_INLINE gram_view mixed_gradients::gram() const {
  return {products_.data(), n_, distances_.empty() ? nullptr : distances_.data()};
}

ADASUM_INLINE std::span<double> mixed_gradients::weights() { return weights_; }

ADASUM_INLINE std::span<const std::size_t> mixed_gradients::nearest(std::size_t i) const {
  return std::span(nearest_).subspan(i * kept_, kept_);
}

ADASUM_INLINE void mixed_gradients::weigh(const pairwise_rule_of_any_type& rule) {
  const std::vector<std::size_t> leaves(n_, 1);
  weigh_scratch scratch(n_);
  constexpr weighing_limits limits{vanishing_threshold, vanishing_threshold, largest_safe_square};
  weigh_along_tree(rule, gram(), leaves.data(), weights_.data(), scratch, limits, cancelled_node::is_zero);
}

ADASUM_INLINE void mixed_gradients::weigh_unmixed(std::span<double> weights) const {
  std::fill(weights.begin(), weights.end(), 0.0);
  for (std::size_t i = 0; i < n_; ++i)
    for (const auto k : nearest(i)) weights[k] += weights_[i] / static_cast<double>(kept_);
}

}  // namespace adasum::detail
#endif
