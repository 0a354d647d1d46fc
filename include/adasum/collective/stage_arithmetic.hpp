// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "../core/combine_window.hpp"
#include "../core/concepts.hpp"
#include "../core/nonfinite.hpp"
#include "../core/segments.hpp"
#include "../core/stage.hpp"
#include "reduction_settings.hpp"

namespace adasum::detail {

/// The arithmetic of stages on one rank: measure, weigh, mix. Knows no other rank: vectors are brought to it, and who
/// adds inner products over the ranks does so in gram_of().
template <scalar T, execution_space<T> Space, rule Rule, rule Inner>
class stage_arithmetic {
 public:
  /// @param space, rule, segments  must outlive this object
  /// @param members                the most vectors of a stage
  stage_arithmetic(const Space& space, Rule& rule, const reduction_settings<Inner>& settings, segments_view segments,
                   std::size_t members)
      : space_(space),
        rule_(rule),
        inner_(settings.inner),
        measures_all_(settings.measure),
        segments_(segments),
        gram_(segments.size() * packed_size(members)),
        weights_(segments.size() * members),
        norms_(members),
        total_(packed_size(members)),
        vectors_(members),
        leaves_(members),
        scratch_(members) {}

  /// Which segments of the whole gradient hold Inf or NaN.
  void find_nonfinite_segments(const T* data, std::span<unsigned char> flags) {
    find_nonfinite<T>(space_, data, segments_, std::span(gram_).first(segments_.size()), flags);
  }
  /// A gradient that takes no part is zero.
  void clear(T* data) {
    const T* const in = data;
    std::ranges::fill(std::span(weights_).first(segments_.size()), 0.0);
    space_.mix(whole(segments_), std::span(&in, 1), weights_.data(), data);
  }

  /// Member i's vector on this rank's part, and how many gradients it combines.
  void bring(std::size_t i, const T* vector, std::size_t gradients) {
    vectors_[i] = vector;
    leaves_[i] = gradients;
  }

  bool is_measured(const stage& level) const {
    return measures_all_ || (level.inner ? needs_gram<Inner> : needs_gram<Rule>);
  }
  /// The members' Gram matrix for each segment: of this rank's part after measure().
  std::span<double> gram_of(const stage& level) {
    return std::span(gram_).first(segments_.size() * packed_size(level.members.size()));
  }
  void measure(const stage& level) {
    space_.measure(window_of(level), vectors_of(level), gram_.data());
    space_.fence();
  }

  /// Weighs, and writes this rank's part of the combination to `out`. See weigh_and_mix.
  template <class Sum, class Observer, class Written>
  void mix(const stage& level, T* out, Sum&& sum_over_ranks, Observer&& observe, Written&& written) {
    const auto n = level.members.size();
    const round_memory arrays{gram_of(level), std::span(weights_).first(segments_.size() * n),
                              std::span(norms_).first(n), std::span(total_).first(packed_size(n)), scratch_};
    const auto by = [&](auto& stage_rule) {
      weigh_and_mix<T>(space_, stage_rule, window_of(level), vectors_of(level), std::span(leaves_).first(n), 0, out,
                       arrays, sum_over_ranks, observe, written);
    };
    level.inner ? by(inner_) : by(rule_);
    space_.fence();
  }

 private:
  slice window_of(const stage& level) const {
    const auto part = level.parts[level.self];
    return {segments_, part, part.begin};
  }
  std::span<const T* const> vectors_of(const stage& level) const {
    return std::span(vectors_).first(level.members.size());
  }

  const Space& space_;
  Rule& rule_;
  Inner inner_;
  bool measures_all_;
  segments_view segments_;
  std::vector<double> gram_, weights_, norms_, total_;
  std::vector<const T*> vectors_;
  std::vector<std::size_t> leaves_;
  weigh_scratch scratch_;
};

}  // namespace adasum::detail
