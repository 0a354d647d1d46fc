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

#include "../../core/optional_members.hpp"
#include "../../core/scalar.hpp"
#include "../../core/tree_order.hpp"
#include "../../core/weigh.hpp"
#include "../references/rule_ref.hpp"
#include "recombined_segment.hpp"
#include "weigh.hpp"

namespace adasum::detail {

/// The arithmetic of recombine: which of a segment's vectors are combined next, and how. Under a pairwise rule the merges
/// of its tree, one after the other, each in place of its first vector; under another, one merge of all vectors.
class exact_merge {
 public:
  /// How many vectors are combined at once.
  static std::size_t together(const rule_ref& rule, std::size_t n) {
    return rule.is_pairwise() ? std::min<std::size_t>(n, 2) : n;
  }
  /// Whether what is left of gradients that cancel might be taken for a gradient: others combine the result further.
  bool watches_noise() const { return rule_.is_pairwise() && rule_.needs_gram(); }
  /// The binary exponent below the largest norm at which vectors are enlarged, if they are (rescaling).
  std::optional<int> lift() const { return rule_.is_pairwise() ? std::optional(100) : std::nullopt; }

  /// @param leaf_counts    how many gradients each vector already combines
  /// @param first_segment  the number of the window's first segment
  /// @param elements       the format of what is combined
  /// @param of_gradients   that of the gradients
  exact_merge(const rule_ref& rule, std::span<const std::size_t> leaf_counts, std::size_t first_segment,
              number_format elements, number_format of_gradients)
      : rule_(rule),
        leaf_counts_(leaf_counts),
        first_segment_(first_segment),
        elements_(elements),
        of_gradients_(of_gradients) {}

  /// Before anything else; apart from the constructor, since it can fail.
  void allocate() {
    const auto n = leaf_counts_.size();
    pointers_.resize(n);
    if (rule_.is_pairwise())
      for_each_merge_under(rule_, n, [&](std::size_t first, std::size_t middle, std::size_t last) {
        merges_.push_back({first, middle, last});
      });
    if (merges_.empty()) merges_.push_back({0, n, n});
  }

  /// From here on, the merge of the given number; where allocate() has failed, one of as many vectors.
  void select(std::size_t number) {
    const auto n = leaf_counts_.size();
    at_ = number;
    inputs_ = {0, 1, together(rule_, n)};
    if (!rule_.is_pairwise() || n < 2 || number >= merges_.size()) return;
    inputs_.first = merges_[number].first;
    inputs_.step = merges_[number].middle - merges_[number].first;
  }
  /// From here on, the result alone.
  void select_root() { inputs_ = {0, 1, 1}; }
  bool is_last() const { return at_ + 1 >= merges_.size(); }

  /// Vectors of the merge.
  std::size_t count() const { return inputs_.count; }
  std::byte* input(const recombined_segment& one, std::size_t i) const { return one.copies.at(inputs_.at(i)); }
  /// Whether vector i of the merge is a gradient, and no combination.
  bool is_leaf(std::size_t i) const {
    if (!rule_.is_pairwise() || inputs_.count == 1) return true;
    const auto& m = merges_[at_];
    return i == 0 ? m.middle == m.first + 1 : m.last == m.middle + 1;
  }
  vector_list inputs_of(const recombined_segment& one) {
    for (std::size_t i = 0; i < inputs_.count; ++i) pointers_[i] = input(one, i);
    return vector_list(pointers_).first(inputs_.count);
  }
  const input_list& inputs() const { return inputs_; }
  gram_view gram_of(const recombined_segment& one) const { return {one.gram.data(), inputs_.count}; }

  /// Under a rule that leaves them out, vectors that are not finite or too long, while others are not, take no part: so the
  /// matrices and the counts say. It cannot fail, so that all ranks decide alike.
  /// @return whether there are any, which are then to be cleared
  bool leave_out(recombined_segment& one) const {
    if (!rule_.leaves_out_nonfinite()) return false;
    const double longest = std::sqrt(largest_mixed_square(of_gradients_));
    std::size_t left_out = 0, present = 0;
    const auto is_left_out = [&](std::size_t i) { return !one.scale.is_finite(i) || one.scale.norm(i) > longest; };
    for (std::size_t i = 0; i < inputs_.count; ++i) {
      if (one.counts[i] == 0) continue;
      ++present;
      left_out += is_left_out(i);
    }
    if (left_out == 0 || left_out == present) return false;
    for (std::size_t i = 0; i < inputs_.count; ++i) {
      if (!is_left_out(i)) continue;
      one.counts[i] = 0;
      one.scale.forget(i);
    }
    return true;
  }
  void clear_left_out(recombined_segment& one) {
    for (std::size_t i = 0; i < inputs_.count; ++i)
      if (one.counts[i] == 0) clear(one, i);
  }

  /// The gradients' norms.
  void note_norms(recombined_segment& one) const {
    for (std::size_t part = 0; part < one.parts.size(); ++part)
      for (std::size_t i = 0; i < inputs_.count; ++i)
        if (is_leaf(i)) one.norms_of(part)[inputs_.at(i)] = one.scale.norm(part, i);
  }

  /// Whether the rule compares distances that the Gram matrix does not give.
  bool needs_differences(const recombined_segment& one) const {
    return rule_.needs_distances() && one.is_finite && any_distance_cancels(gram_of(one), one.counts);
  }
  /// ‖vector i - vector j‖² for those of them, 0 for all others.
  void measure_differences(recombined_segment& one, double* packed) {
    std::fill_n(packed, packed_size(inputs_.count), 0.0);
    for (std::size_t i = 0; i < inputs_.count; ++i)
      for (std::size_t j = 0; j < i; ++j) {
        if (!distance_cancels(gram_of(one), i, j)) continue;
        const std::array<const void*, 2> both{input(one, i), input(one, j)};
        void* const difference = one.copies.at(leaf_counts_.size());
        for (std::size_t part = 0; part < one.parts.size(); ++part) {
          const std::array<double, 2> weights{std::ldexp(1.0, one.scale.missing(part, i)),
                                              -std::ldexp(1.0, one.scale.missing(part, j))};
          one.copies.mix(both, one.parts[part], weights.data(), difference);
        }
        const void* const in = difference;
        one.copies.measure(std::span(&in, 1), &packed[packed_index(i, j)]);
      }
  }
  /// … added over the ranks.
  void note_differences(recombined_segment& one, const double* packed) {
    one.has_differences = true;
    for (std::size_t i = 0; i < inputs_.count; ++i)
      for (std::size_t j = 0; j <= i; ++j)
        one.squared_distances[packed_index(i, j)] =
            distance_cancels(gram_of(one), i, j) ? packed[packed_index(i, j)] : gram_of(one).squared_distance(i, j);
  }

  /// The merge of one segment, in place of its first vector.
  void combine(recombined_segment& one) {
    const auto n = inputs_.count;
    std::vector<double> terms(n), weights(n, 1);  // |weight|·norm, also where the weight is out of double's range
    std::vector<double> norms(n);
    for (std::size_t i = 0; i < n; ++i) norms[i] = one.scale.norm(i);
    const auto is_noise = [&](std::size_t i) {
      const double noise = one.noise[inputs_.at(i)];
      return noise > 0 && norms[i] <= noise;
    };
    const auto fallbacks = rule_.fallbacks();
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
    const int degree = rule_.fallbacks() == fallbacks ? rule_.degree() : 1;  // the mean's
    const int back = one.is_rescaled ? degree * -one.scale.common() : 0;
    for (std::size_t part = 0; part < one.parts.size(); ++part) mix_part(one, part, weights, back);
    for (std::size_t i = 0; i < n; ++i) {
      terms[i] = rescaling::unscaled(std::abs(weights[i]) * std::sqrt(one.gram[packed_index(i, i)]), back);
      weights[i] = std::ldexp(weights[i], back + one.scale.wanted(i));
    }
    note(one, weights, terms, norms);
  }

  void clear(recombined_segment& one) {
    clear(one, 0);
    for (std::size_t part = 0; part < one.parts.size(); ++part) one.scale.exponent(part, inputs_.at(0)) = 0;
    std::ranges::fill(one.result_norms, 0.0);
  }

 private:
  void clear(recombined_segment& one, std::size_t vector) {
    constexpr double zero = 0;
    const void* const in = one.copies.at(vector);
    one.copies.mix(std::span(&in, 1), &zero, one.copies.at(vector));
  }

  /// Σ weights[i] 2^(back + wanted) vᵢ of one part, in place of its first vector: times the power of two by which its longest
  /// term comes near 1.
  void mix_part(recombined_segment& one, std::size_t part, std::span<const double> weights, int back) {
    const auto n = inputs_.count;
    const auto gram = one.scale.matrix(part);
    const auto exponent = [&](std::size_t i) { return back + one.scale.missing(part, i); };
    std::vector<double> of_part(weights.begin(), weights.end());
    int shift = 0;
    if (one.is_rescaled) {
      int longest = std::numeric_limits<int>::min();
      for (std::size_t i = 0; i < n; ++i)
        if (gram(i, i) > 0 && !is_zero(weights[i]) && is_finite(weights[i]))
          longest = std::max(longest, std::ilogb(weights[i]) + exponent(i) + std::ilogb(std::sqrt(gram(i, i))));
      if (longest != std::numeric_limits<int>::min()) shift = -longest;
      for (std::size_t i = 0; i < n; ++i) of_part[i] = gram(i, i) > 0 ? std::ldexp(weights[i], exponent(i) + shift) : 0;
    }
    one.copies.mix(inputs_of(one), one.parts[part], of_part.data(), input(one, 0));
    one.scale.exponent(part, inputs_.at(0)) = shift;
    one.result_norms[part] = one.is_finite ? rescaling::unscaled(std::sqrt(squared_norm(gram, of_part)), -shift)
                                           : std::numeric_limits<double>::quiet_NaN();
  }

  void weigh_inputs(recombined_segment& one, std::span<double> weights) {
    if (rule_.is_pairwise()) {
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
  void note(recombined_segment& one, std::span<const double> weights, std::span<const double> terms,
            std::span<const double> norms) {
    if (!rule_.is_pairwise() || inputs_.count == 1) {
      one.weights.assign(weights.begin(), weights.end());
      return;
    }
    const auto& m = merges_[at_];
    for (auto i = m.first; i < m.middle; ++i) one.weights[i] *= weights[0];
    for (auto i = m.middle; i < m.last; ++i) one.weights[i] *= weights[1];
    one.counts[m.first] += one.counts[m.middle];
    if (!watches_noise()) return;
    // One rounding of each term and of the sum, and a few of double in the weights.
    const double rounding = 2 * unit_roundoff(elements_) + 8 * unit_roundoff(number_format::binary64);
    // An error is multiplied as its vector is. A number has no direction that could be wrong: its error does not grow.
    const auto kept = [&](std::size_t i, double noise) {
      if (!(terms[i] > 0)) return 0.0;
      const double share = std::min(1.0, noise / norms[i]);
      return one.is_scalar ? std::min(terms[i], norms[i]) * share : terms[i] * share;
    };
    one.noise[m.first] = kept(0, one.noise[m.first]) + kept(1, one.noise[m.middle]) +
                         std::hypot(rounding * terms[0], rounding * terms[1]);
  }

  rule_ref rule_;
  std::span<const std::size_t> leaf_counts_;
  std::size_t first_segment_;
  number_format elements_, of_gradients_;
  std::vector<merge> merges_;
  std::vector<const void*> pointers_;
  std::size_t at_ = 0;  // the merge
  input_list inputs_;
};

}  // namespace adasum::detail
