// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <span>
#include <string_view>
#include <vector>

#include "../core/concepts.hpp"
#include "../core/gram.hpp"
#include "../core/optional_members.hpp"
#include "../core/weigh.hpp"

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
  static constexpr std::string_view prefix = "nnm_", rule_name = Rule::name;
  static constexpr auto text = [] {
    std::array<char, prefix.size() + rule_name.size()> both{};
    std::ranges::copy(rule_name, std::ranges::copy(prefix, both.begin()).out);
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
      all.insert(all.end(), inner.begin(), inner.end());
      return all;
    });
  }

  void operator()(gram_view g, std::span<double> weights, std::size_t segment) {
    const auto n = g.size();
    const auto nearby = neighbours(g);
    auto mixed = between_means(nearby, g);
    for (std::size_t i = 0; i < n; ++i) {
      double& square = mixed[packed_index(i, i)];
      square = std::max(square, 0.0);
    }
    std::vector<double> distances, found(n);
    if constexpr (::adasum::needs_distances<Rule>) {
      distances = between_means(nearby, [&](std::size_t i, std::size_t j) { return g.squared_distance(i, j); });
      for (std::size_t i = n; i-- > 0;)  // from the end: a row asks for the diagonal of those before it
        for (std::size_t j = 0; j <= i; ++j) {
          const double own = distances[packed_index(i, i)] + distances[packed_index(j, j)];
          double& square = distances[packed_index(i, j)];
          square = nearby[i] == nearby[j] ? 0 : std::max(0.0, square - own / 2);
        }
    }
    apply({mixed.data(), n, distances.empty() ? nullptr : distances.data()}, found, segment);
    fallbacks = fallbacks_of(rule);
    std::ranges::fill(weights, 0.0);
    for (std::size_t i = 0; i < n; ++i)
      for (const auto k : nearby[i]) weights[k] += found[i] / static_cast<double>(nearby[i].size());
  }

 private:
  using neighbour_lists = std::vector<std::vector<std::size_t>>;

  /// M A Mᵀ, packed, of a symmetric A.
  template <class Matrix>
  static std::vector<double> between_means(const neighbour_lists& nearby, const Matrix& a) {
    const auto n = nearby.size();
    std::vector<double> rows(n * n), packed(packed_size(n));
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        double sum = 0;
        for (const auto k : nearby[i]) sum += a(k, j);
        rows[i * n + j] = sum / static_cast<double>(nearby[i].size());
      }
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j <= i; ++j) {
        double sum = 0;
        for (const auto k : nearby[j]) sum += rows[i * n + k];
        packed[packed_index(i, j)] = sum / static_cast<double>(nearby[j].size());
      }
    return packed;
  }

  /// Of each gradient the n - f nearest, itself included, ascending.
  neighbour_lists neighbours(gram_view g) const {
    const auto n = g.size(), kept = n - std::min(byzantine, n - 1);
    std::vector<std::vector<std::size_t>> nearby(n, std::vector<std::size_t>(n));
    std::vector<double> squares(n);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) squares[j] = j == i ? -1 : g.squared_distance(i, j);
      std::iota(nearby[i].begin(), nearby[i].end(), std::size_t{0});
      std::ranges::stable_sort(nearby[i], {}, [&](std::size_t j) { return squares[j]; });
      nearby[i].resize(kept);
      std::ranges::sort(nearby[i]);  // the same neighbours have the same mean, to the last bit
    }
    return nearby;
  }

  void apply(gram_view gram, std::span<double> found, std::size_t segment) {
    if constexpr (pairwise_rule<Rule>) {
      const std::vector<std::size_t> leaves(gram.size(), 1);
      detail::weigh_scratch scratch(gram.size());
      constexpr detail::weighing_limits limits{detail::vanishing_threshold, detail::vanishing_threshold,
                                               detail::largest_safe_square};
      detail::weigh_along_tree(rule, gram, leaves.data(), found.data(), scratch, limits,
                               detail::cancelled_node::is_zero);
    } else if constexpr (requires { rule(gram, found, segment); }) {
      rule(gram, found, segment);
    } else {
      rule(gram, found);
    }
  }
};

}  // namespace adasum::rules
