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
#include "../detail/references/rule_ref.hpp"

namespace adasum::detail {

/// The weights of rules::nearest_neighbour_mixing, for any rule.
/// @param byzantine  as many gradients are not taken, at most n - 1
void weigh_mixed(const rule_ref& rule, std::size_t byzantine, gram_view gram, std::span<double> weights,
                 std::size_t segment);

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
    std::vector<double> all{static_cast<double>(byzantine)};
    for (const double one : parameters_of(rule)) all.push_back(one);
    return all;
  }

  void operator()(gram_view g, std::span<double> weights, std::size_t segment) {
    const detail::rule_ref inner(rule);
    detail::weigh_mixed(inner, byzantine, g, weights, segment);
    fallbacks = inner.fallbacks();
  }
};

}  // namespace adasum::rules

#if ADASUM_DEFINITIONS
#include <algorithm>

#include "orders.hpp"

namespace adasum::detail {

/// Of each gradient the nearest ones, itself included.
class neighbours {
 public:
  /// @param kept  how many
  neighbours(gram_view gram, std::size_t kept) : n_(gram.size()), kept_(kept) {
    std::vector<double> squares(n_);
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t j = 0; j < n_; ++j) squares[j] = j == i ? -1 : gram.squared_distance(i, j);
      auto order = rules::ascending_order(squares);
      order.resize(kept_);
      std::sort(order.begin(), order.end());  // the same neighbours have the same mean, to the last bit
      nearest_.insert(nearest_.end(), order.begin(), order.end());
    }
  }

  /// Ascending.
  std::span<const std::size_t> of(std::size_t i) const { return std::span(nearest_).subspan(i * kept_, kept_); }

  /// M A Mᵀ, packed, of a symmetric A.
  template <class Symmetric>
  std::vector<double> between_means(const Symmetric& a) const {
    const auto count = static_cast<double>(kept_);
    std::vector<double> rows(n_ * n_), packed(packed_size(n_));
    for (std::size_t i = 0; i < n_; ++i)
      for (std::size_t j = 0; j < n_; ++j) {
        double sum = 0;
        for (const auto k : of(i)) sum += a(k, j);
        rows[i * n_ + j] = sum / count;
      }
    for (std::size_t i = 0; i < n_; ++i)
      for (std::size_t j = 0; j <= i; ++j) {
        double sum = 0;
        for (const auto k : of(j)) sum += rows[i * n_ + k];
        packed[packed_index(i, j)] = sum / count;
      }
    return packed;
  }

 private:
  std::size_t n_, kept_;
  std::vector<std::size_t> nearest_;
};

/// The squared distances of the means, packed.
inline std::vector<double> distances_of_means(const neighbours& nearest, gram_view gram) {
  auto found = nearest.between_means([&](std::size_t i, std::size_t j) { return gram.squared_distance(i, j); });
  for (std::size_t i = gram.size(); i-- > 0;)  // from the end: a row asks for the diagonal of those before it
    for (std::size_t j = 0; j <= i; ++j) {
      const double own = found[packed_index(i, i)] + found[packed_index(j, j)];
      double& square = found[packed_index(i, j)];
      const bool same = std::equal(nearest.of(i).begin(), nearest.of(i).end(), nearest.of(j).begin());
      square = same ? 0 : std::max(0.0, square - own / 2);
    }
  return found;
}

ADASUM_INLINE void weigh_mixed(const rule_ref& rule, std::size_t byzantine, gram_view gram, std::span<double> weights,
                               std::size_t segment) {
  const auto n = gram.size(), kept = n - std::min(byzantine, n - 1);
  const neighbours nearest(gram, kept);
  auto products = nearest.between_means(gram);
  for (std::size_t i = 0; i < n; ++i) {
    double& square = products[packed_index(i, i)];
    square = std::max(square, 0.0);
  }
  std::vector<double> distances, of_means(n);
  if (rule.needs_distances()) distances = distances_of_means(nearest, gram);
  weigh_by_products(rule, {products.data(), n, distances.empty() ? nullptr : distances.data()}, of_means, segment);
  std::fill(weights.begin(), weights.end(), 0.0);
  for (std::size_t i = 0; i < n; ++i)
    for (const auto k : nearest.of(i)) weights[k] += of_means[i] / static_cast<double>(kept);
}

}  // namespace adasum::detail
#endif
