// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "../../core/gram.hpp"
#include "../../core/scalar.hpp"
#include "../../core/weigh.hpp"
#include "../references/rule_ref.hpp"

/// From a Gram matrix and any rule to the weights of one segment. Pure: numbers in, numbers out.
namespace adasum::detail {

/// Weights of the vectors that take part (leaves[i] > 0) under a rule for n vectors at once; 0 for the others.
inline void weigh_all_at_once(const rule_ref& rule, gram_view gram, std::span<const std::size_t> leaves,
                              std::span<double> weights, std::size_t segment, weigh_scratch& scratch) {
  const auto absent = static_cast<std::size_t>(std::ranges::count(leaves, std::size_t{0}));
  if (absent == 0) return rule(gram, weights, segment);
  std::ranges::fill(weights, 0.0);
  const auto present = gram.size() - absent;
  if (present == 0) return;
  const auto pack = [&](std::vector<double>& packed, const auto& entry_of) {
    auto entry = packed.begin();
    for (std::size_t i = 0; i < gram.size(); ++i)
      for (std::size_t j = 0; j <= i; ++j)
        if (leaves[i] != 0 && leaves[j] != 0) *entry++ = entry_of(i, j);
    return packed.data();
  };
  const double* const products = pack(scratch.gram, gram);
  const double* distances = nullptr;
  if (gram.has_squared_distances()) {  // then vectors are being recombined, which may allocate
    scratch.squared_distances.resize(packed_size(present));
    distances =
        pack(scratch.squared_distances, [&](std::size_t i, std::size_t j) { return gram.squared_distance(i, j); });
  }
  const auto found = std::span(scratch.weights).first(present);
  rule({products, present, distances}, found, segment);
  for (std::size_t i = 0, next = 0; i < gram.size(); ++i)
    if (leaves[i] != 0) weights[i] = found[next++];
}

/// For a rule that leaves out what is not finite: `leaves`, with 0 for the vectors that it leaves out, in scratch.leaves.
/// Where no vector or every one is such, nothing is changed, and the answer is empty.
inline std::span<const std::size_t> leaves_of_finite(gram_view gram, std::span<const std::size_t> leaves,
                                                     double largest, weigh_scratch& scratch) {
  bool any = false, all = true;
  for (std::size_t i = 0; i < gram.size(); ++i) {
    scratch.leaves[i] = 0;
    if (leaves[i] == 0) continue;
    const bool takes_part = is_finite(gram(i, i)) && gram(i, i) <= largest;
    if (takes_part) scratch.leaves[i] = leaves[i];
    any = any || takes_part;
    all = all && takes_part;
  }
  if (!any || all) return {};
  return std::span(scratch.leaves).first(gram.size());
}

/// What is decided before the rule is asked: the same on a rank on which it then throws.
/// @param asked_about  receives the leaves, with 0 for the vectors that the rule leaves out
inline weighing decided_beforehand(const rule_ref& rule, gram_view gram, std::span<const std::size_t> leaves,
                                   const weighing_limits& limits, weigh_scratch& scratch,
                                   std::span<const std::size_t>& asked_about) {
  asked_about = leaves;
  std::span<const std::size_t> some;
  if (rule.leaves_out_nonfinite()) some = leaves_of_finite(gram, leaves, limits.largest_square, scratch);
  if (!some.empty()) asked_about = some;
  auto quality = weighing::good;
  if (some.empty())
    quality = weighing_of_squares(gram, limits.largest_square);
  else
    for (std::size_t i = 0; i < gram.size(); ++i) {
      // Of a vector that is left out, an infinite square may be that of finite doubles: then its norm is to be found.
      const bool is_known = some[i] != 0 ? gram(i, i) == 0 || gram(i, i) >= smallest_safe_square
                                         : !is_infinite(gram(i, i)) || limits.largest_square < largest_safe_square;
      if (!is_known) quality = weighing::needs_vectors;
    }
  if (rule.needs_distances() && quality == weighing::good && any_distance_cancels(gram, asked_about))
    quality = weighing::needs_vectors;
  return quality;
}

/// Of a segment that the rule is not asked about.
inline void set_weights(weighing quality, std::span<double> weights) {
  if (quality == weighing::nonfinite) std::ranges::fill(weights, std::numeric_limits<double>::quiet_NaN());
}

/// Weights of n vectors under a pairwise rule.
inline weighing weigh_pairwise(const rule_ref& rule, gram_view gram, std::span<const std::size_t> leaves,
                               std::span<double> weights, weigh_scratch& scratch, const weighing_limits& limits) {
  const auto quality = weighing_of_squares(gram, limits.largest_square);
  set_weights(quality, weights);
  if (quality != weighing::good) return quality;
  if (gram.size() != 2) return weigh_along_tree(rule, gram, leaves.data(), weights.data(), scratch, limits);
  const pair_gram moments{gram(0, 0), gram(1, 0), gram(1, 1), leaves[0], leaves[1]};
  const pair_weights pair = rule(moments);
  weights[0] = pair.a;
  weights[1] = pair.b;
  return rule.needs_gram() && cancels(moments, pair, limits) ? weighing::needs_vectors : weighing::good;
}

/// Weights of n vectors under any rule.
/// @param leaves   how many gradients each vector already combines; 0 for one that takes no part
/// @param segment  its number, for rules that keep state
/// @param limits   see limits_for
inline weighing weigh(const rule_ref& rule, gram_view gram, std::span<const std::size_t> leaves,
                      std::span<double> weights, std::size_t segment, weigh_scratch& scratch,
                      const weighing_limits& limits = usual_limits) {
  if (rule.is_pairwise()) {
    // The case of most reductions by far, and where segments are short, this is what they cost: for a size known here.
    if (gram.size() == 2) return weigh_pairwise(rule, {gram.row(0), 2}, leaves, weights, scratch, limits);
    return weigh_pairwise(rule, gram, leaves, weights, scratch, limits);
  }
  std::span<const std::size_t> asked_about;
  const auto quality = decided_beforehand(rule, gram, leaves, limits, scratch, asked_about);
  set_weights(quality, weights);
  if (quality == weighing::good) weigh_all_at_once(rule, gram, asked_about, weights, segment, scratch);
  return quality;
}

}  // namespace adasum::detail
