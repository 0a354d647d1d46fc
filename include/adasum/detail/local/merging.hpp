// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "../../core/concepts.hpp"
#include "../../core/optional_members.hpp"
#include "../../core/scalar.hpp"
#include "../../core/tree_order.hpp"
#include "../../core/weigh.hpp"
#include "recombined_segment.hpp"

namespace adasum::detail {

/// The arithmetic of recombine: which of a segment's vectors are combined next, and how. Under a pairwise rule the merges
/// of its tree, one after the other, each in place of its first vector; under another, one merge of all vectors.
template <scalar T, execution_space<T> Space, rule Rule>
class merging {
 public:
  using segment_type = recombined_segment<T, Space>;
  using element = typename segment_copies<T, Space>::element;

  /// How many vectors are combined at once.
  static constexpr std::size_t together(std::size_t n) { return pairwise_rule<Rule> ? std::min<std::size_t>(n, 2) : n; }
  /// Whether what is left of gradients that cancel might be taken for a gradient: others combine the result further.
  static constexpr bool watches_noise = pairwise_rule<Rule> && needs_gram<Rule>;
  /// The binary exponent below the largest norm at which vectors are enlarged, if they are (rescaling.hpp).
  static constexpr std::optional<int> lift = pairwise_rule<Rule> ? std::optional(100) : std::nullopt;

  /// @param leaf_counts    how many gradients each vector already combines
  /// @param first_segment  the number of the window's first segment
  merging(Rule& rule, std::span<const std::size_t> leaf_counts, std::size_t first_segment)
      : rule_(rule), leaf_counts_(leaf_counts), first_segment_(first_segment) {}

  /// Before anything else; apart from the constructor, since it can fail.
  void allocate() {
    const auto n = leaf_counts_.size();
    pointers_.resize(n);
    if constexpr (pairwise_rule<Rule>)
      for_each_merge_under<Rule>(n, [&](std::size_t first, std::size_t middle, std::size_t last) {
        merges_.push_back({first, middle, last});
      });
    if (merges_.empty()) merges_.push_back({0, n, n});
  }

  /// From here on, the merge of the given number; where allocate() has failed, one of as many vectors.
  void select(std::size_t number) {
    const auto n = leaf_counts_.size();
    at_ = number;
    inputs_ = {0, 1, together(n)};
    if (!pairwise_rule<Rule> || n < 2 || number >= merges_.size()) return;
    inputs_.first = merges_[number].first;
    inputs_.step = merges_[number].middle - merges_[number].first;
  }
  /// From here on, the result alone.
  void select_root() { inputs_ = {0, 1, 1}; }
  bool is_last() const { return at_ + 1 >= merges_.size(); }

  /// Vectors of the merge.
  std::size_t count() const { return inputs_.count; }
  element* input(const segment_type& one, std::size_t i) const { return one.copies.at(place_of(i)); }
  /// Whether vector i of the merge is a gradient, and no combination.
  bool is_leaf(std::size_t i) const {
    if (!pairwise_rule<Rule> || inputs_.count == 1) return true;
    const auto& m = merges_[at_];
    return i == 0 ? m.middle == m.first + 1 : m.last == m.middle + 1;
  }
  std::size_t place_of(std::size_t i) const { return inputs_.first + i * inputs_.step; }
  std::span<const element* const> inputs_of(const segment_type& one) {
    for (std::size_t i = 0; i < inputs_.count; ++i) pointers_[i] = input(one, i);
    return std::span(pointers_).first(inputs_.count);
  }
  static gram_view gram_of(const segment_type& one) { return {one.gram.data(), one.scale.by.size()}; }

  /// Under a rule that leaves them out, vectors that are not finite or whose squares are too large, while others' are not,
  /// take no part: so the matrix and the counts say. It cannot fail, so that all ranks decide alike.
  /// @return whether there are any, which are then to be cleared
  static bool leave_out(segment_type& one, double largest_square) {
    if constexpr (pairwise_rule<Rule> || !leaves_out_nonfinite<Rule>) {
      return false;
    } else {
      const auto gram = gram_of(one);
      const auto is_left_out = [&](std::size_t i) { return !is_finite(gram(i, i)) || gram(i, i) > largest_square; };
      const auto n = gram.size();
      std::size_t left_out = 0, present = 0;
      for (std::size_t i = 0; i < n; ++i) {
        if (one.counts[i] == 0) continue;
        ++present;
        left_out += is_left_out(i);
      }
      if (left_out == 0 || left_out == present) return false;
      for (std::size_t i = 0; i < n; ++i) {
        if (!is_left_out(i)) continue;
        one.counts[i] = 0;
        one.norms[i] = std::sqrt(gram(i, i));
      }
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j)
          if (one.counts[i] == 0) one.gram[packed_index(i, j)] = 0;
      return true;
    }
  }
  void clear_left_out(segment_type& one) {
    for (std::size_t i = 0; i < inputs_.count; ++i)
      if (one.counts[i] == 0) clear(one, i);
  }

  /// Of a segment that stands for several, the gradients' norms in each.
  void note_norms_of_parts(segment_type& one) const {
    for (std::size_t i = 0; i < inputs_.count; ++i)
      if (is_leaf(i)) one.norms_of_parts.note_norms(i, inputs_.count, place_of(i), one.scale.exponent[i]);
  }

  /// Whether the rule compares distances that the Gram matrix does not give.
  static bool needs_differences(const segment_type& one) {
    return needs_distances<Rule> && one.is_finite && any_distance_cancels(gram_of(one), one.counts);
  }
  /// ‖vector i - vector j‖² for those of them, 0 for all others.
  void measure_differences(segment_type& one, double* packed) {
    std::fill_n(packed, packed_size(inputs_.count), 0.0);
    for (std::size_t i = 0; i < inputs_.count; ++i)
      for (std::size_t j = 0; j < i; ++j) {
        if (!distance_cancels(gram_of(one), i, j)) continue;
        const std::array<const element*, 2> both{input(one, i), input(one, j)};
        constexpr std::array<double, 2> weights{1, -1};
        element* const difference = one.copies.at(leaf_counts_.size());
        one.copies.mix(both, weights.data(), difference);
        const element* const in = difference;
        one.copies.measure(std::span(&in, 1), &packed[packed_index(i, j)]);
      }
  }
  /// … added over the ranks.
  void note_differences(segment_type& one, const double* packed) {
    one.has_differences = true;
    for (std::size_t i = 0; i < inputs_.count; ++i)
      for (std::size_t j = 0; j <= i; ++j)
        one.squared_distances[packed_index(i, j)] =
            distance_cancels(gram_of(one), i, j) ? packed[packed_index(i, j)] : gram_of(one).squared_distance(i, j);
  }

  /// The merge of one segment, in place of its first vector.
  void combine(segment_type& one) {
    const auto n = inputs_.count;
    std::vector<double> terms(n), weights(n, 1);  // |weight|·norm, also where the weight is out of double's range
    const auto noise = [&](std::size_t i) { return one.noise[place_of(i)]; };
    const auto is_noise = [&](std::size_t i) { return noise(i) > 0 && one.scale.norms[i] <= noise(i); };
    const auto fallbacks = fallbacks_of(rule_);
    if (one.is_finite) {
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j)
          if (is_noise(i)) one.gram[packed_index(i, j)] = 0;
      weigh_inputs(one, weights);
      for (std::size_t i = 0; i < n; ++i)
        if (is_noise(i)) weights[i] = 0;
    } else {
      std::ranges::fill(weights, std::numeric_limits<double>::quiet_NaN());
    }
    const double norm = std::sqrt(squared_norm(gram_of(one), weights));
    one.copies.mix(inputs_of(one), weights.data(), input(one, 0));
    const int degree = fallbacks_of(rule_) == fallbacks ? degree_of(rule_) : 1;  // the mean's
    const int back = one.is_rescaled ? degree * -one.scale.common : 0;
    one.copies.scale(input(one, 0), back);
    one.result_norm = one.is_finite ? std::ldexp(norm, back) : std::numeric_limits<double>::quiet_NaN();
    one.norms_of_parts.forget_result();
    if (one.is_rescaled)  // the parts were measured at the first scale
      one.norms_of_parts.note_result(weights,
                                     [&](std::size_t i) { return back + one.scale.wanted[i] - one.scale.exponent[i]; });
    for (std::size_t i = 0; i < n; ++i) {
      terms[i] = std::ldexp(std::abs(weights[i]) * std::sqrt(one.gram[packed_index(i, i)]), back);
      weights[i] = std::ldexp(weights[i], back + (one.is_rescaled ? one.scale.wanted[i] : 0));
    }
    note(one, weights, terms);
  }

  void clear(segment_type& one) {
    clear(one, 0);
    one.result_norm = 0;
    one.norms_of_parts.clear_result();
  }

 private:
  void clear(segment_type& one, std::size_t vector) {
    constexpr double zero = 0;
    const element* const in = one.copies.at(vector);
    one.copies.mix(std::span(&in, 1), &zero, one.copies.at(vector));
  }

  void weigh_inputs(segment_type& one, std::span<double> weights) {
    if constexpr (pairwise_rule<Rule>) {
      if (inputs_.count == 1) return;
      const auto& m = merges_[at_];
      const auto found =
          rule_(pair_gram{one.gram[0], one.gram[1], one.gram[2], one.counts[m.first], one.counts[m.middle]});
      weights[0] = found.a;
      weights[1] = found.b;
    } else {
      weigh_scratch scratch(inputs_.count);
      const gram_view gram{one.gram.data(), inputs_.count,
                           one.has_differences ? one.squared_distances.data() : nullptr};
      weigh_all_at_once(rule_, gram, one.counts, weights, first_segment_ + one.segment, scratch);
    }
  }

  /// What the merge means for the leaves below it, and for the subtree that it makes.
  void note(segment_type& one, std::span<const double> weights, std::span<const double> terms) {
    if (!pairwise_rule<Rule> || inputs_.count == 1) {
      for (std::size_t i = 0; i < inputs_.count; ++i)
        if (one.counts[i] == leaf_counts_[i]) one.norms[i] = one.scale.norms[i];  // not left out
      one.weights.assign(weights.begin(), weights.end());
      return;
    }
    const auto& m = merges_[at_];
    for (auto i = m.first; i < m.middle; ++i) one.weights[i] *= weights[0];
    for (auto i = m.middle; i < m.last; ++i) one.weights[i] *= weights[1];
    for (std::size_t i = 0; i < 2; ++i)
      if (is_leaf(i)) one.norms[place_of(i)] = one.scale.norms[i];
    one.counts[m.first] += one.counts[m.middle];
    if (!watches_noise) return;
    // One rounding of each term and of the sum, and a few of double in the weights.
    constexpr double rounding = 2 * unit_roundoff(format_of<element>) + 8 * unit_roundoff(number_format::binary64);
    // An error is multiplied as its vector is. A number has no direction that could be wrong: its error does not grow.
    const auto kept = [&](std::size_t i, double noise) {
      if (!(terms[i] > 0)) return 0.0;
      const double share = std::min(1.0, noise / one.scale.norms[i]);
      return one.is_scalar ? std::min(terms[i], one.scale.norms[i]) * share : terms[i] * share;
    };
    one.noise[m.first] =
        kept(0, one.noise[m.first]) + kept(1, one.noise[m.middle]) + rounding * std::hypot(terms[0], terms[1]);
  }

  struct input_list {
    std::size_t first = 0, step = 1, count = 0;
  };

  Rule& rule_;
  std::span<const std::size_t> leaf_counts_;
  std::size_t first_segment_;
  std::vector<merge> merges_;
  std::vector<const element*> pointers_;
  std::size_t at_ = 0;  // the merge
  input_list inputs_;
};

}  // namespace adasum::detail
