// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "../../core/segments.hpp"
#include "../../core/stage.hpp"
#include "../../core/weigh.hpp"
#include "../numerics/combine_window.hpp"
#include "../numerics/nonfinite.hpp"
#include "../numerics/recombine.hpp"
#include "../references/rule_ref.hpp"
#include "../references/space_ref.hpp"
#include "engine_settings.hpp"

namespace adasum::detail {

/// The arithmetic of stages on one rank: measure, weigh, mix, recombine. Knows no other rank: vectors are brought to it,
/// and who adds inner products over the ranks does so in gram_of() and in what recombine() returns.
class local_stages {
 public:
  /// @param settings  must outlive this object
  /// @param members   the most vectors of a stage
  local_stages(const engine_settings& settings, std::size_t members)
      : space_(settings.space),
        rule_(settings.rule),
        held_inner_(settings.inner_rule.copy_of_rule()),
        inner_(settings.inner_rule.to(held_inner_)),
        measures_all_(settings.measure),
        gradients_(settings.gradients),
        segments_(settings.segments),
        gram_(segments_.size() * packed_size(members)),
        weights_(segments_.size() * members),
        norms_(members),
        total_(packed_size(members)),
        vectors_(members),
        leaf_counts_(members),
        weigh_scratch_(members),
        recombine_scratch_(most_products(members)) {
    unsettled_.reserve(segments_.size());
  }

  /// Doubles that a stage of n members adds over the ranks at once, at most.
  std::size_t most_products(std::size_t n) const {
    const auto segments = segments_.size();
    return std::max({segments * packed_size(n), recombination::scratch_size(rule_, segments, n),
                     recombination::scratch_size(inner_, segments, n)});
  }
  rule_ref inner_rule() const { return inner_; }
  rule_ref rule_of(const stage& one) const { return one.inner ? inner_ : rule_; }

  /// Which segments of the whole gradient hold Inf or NaN.
  void find_nonfinite_segments(const std::byte* gradient, std::span<unsigned char> flags) {
    find_nonfinite(space_, gradient, segments_, std::span(recombine_scratch_).first(segments_.size()), flags);
  }
  /// A gradient that takes no part is zero.
  void clear(std::byte* gradient) {
    const void* const in = gradient;
    std::fill_n(weights_.begin(), segments_.size(), 0.0);
    space_.mix(whole(segments_), std::span(&in, 1), weights_.data(), gradient);
  }

  /// Member i's vector on this rank's part, and how many gradients it combines.
  void set_vector(std::size_t i, const std::byte* vector, std::size_t gradients) {
    vectors_[i] = vector;
    leaf_counts_[i] = gradients;
  }
  bool is_measured(const stage& one) const { return measures_all_ || rule_of(one).needs_gram(); }
  /// The members' Gram matrix for each segment: of this rank's part after measure().
  std::span<double> gram_of(const stage& one) {
    return std::span(gram_).first(segments_.size() * packed_size(one.members.size()));
  }
  void measure(const stage& one) {
    if (!is_measured(one)) return std::ranges::fill(gram_of(one), 0.0), void();
    measure_for(rule_of(one), space_, window_of(one), vectors_of(one), gram_of(one).data());
    space_.fence();
    leave_to_others(one);
  }
  /// Weights from the Gram matrices. @param observe  is told of each segment that is settled
  /// @return what the rule threw, if it did: see weigh_window
  template <class Observer>
  std::exception_ptr weigh(const stage& one, const Observer& observe) {
    std::exception_ptr problem;
    const auto rule = rule_of(one);
    const auto memory = memory_of(one);
    weigh_window(rule, leaf_counts_of(one), 0, memory, limits_of(one), problem);
    if (!problem)
      for_each_settled(memory, rule.weighs_whole_model(), [&](std::size_t k) { observe(k, outcome_of(memory, k)); });
    return problem;
  }
  /// This rank's part of the combination, of the segments that are settled.
  void mix(const stage& one, std::byte* out, const written_elements& written) {
    mix_window(space_, rule_of(one), window_of(one), vectors_of(one), memory_of(one), out, written);
    space_.fence();
  }

  // ── the segments that are not ──
  /// Whether there may be some, and the rule may throw on a rank that then would not know. See may_leave_unsettled.
  bool may_leave_unsettled(const stage& one) {
    const auto rule = rule_of(one);
    return rule.may_fail_undecided() && detail::may_leave_unsettled(rule, memory_of(one), limits_of(one));
  }
  bool has_unsettled() const { return !unsettled_.empty(); }
  /// @param problem  what this rank has failed with already, if it has
  void begin_recombining(const stage& one, std::exception_ptr problem) {
    const auto rule = rule_of(one);
    const bool whole_model = rule.weighs_whole_model();
    const auto elements = [&](std::size_t k) {
      auto found = recombined_elements(window_of(one), k, whole_model);
      if (gradients_.are_cut()) describe_whole_gradients(found, k, whole_model);
      return found;
    };
    recombination_.emplace(space_, rule, vectors_of(one), leaf_counts_of(one), std::span<const std::size_t>(unsettled_),
                           whole_model ? segments_.size() : 1, 0, elements, std::span(recombine_scratch_),
                           std::move(problem));
  }
  /// @return what is to be added over the ranks next; nothing if all is there, or has failed
  std::span<double> recombine() { return recombination_->advance(); }
  /// What failed on this rank from outside.
  void fail_recombining(const std::exception_ptr& problem) { recombination_->fail(problem); }
  /// Writes the recombined segments.
  /// @throws what failed; communication_error: on another rank
  void finish_recombining(std::byte* out, segment_observer observe, function_ref<void(index_range)> written) {
    finish_recombination(space_, *recombination_, out, observe, written);
    recombination_.reset();
    unsettled_.clear();
  }
  /// What has failed on this rank in recombining; null if nothing has.
  std::exception_ptr problem_in_recombining() const { return recombination_ ? recombination_->problem() : nullptr; }
  void forget_recombining() { recombination_.reset(); }

 private:
  weighing_limits limits_of(const stage& one) const {
    return limits_for(space_.format(), one.members.size(), space_.copies_are_double());
  }
  /// What other ranks have as well counts once. (It has been measured here, too: such segments are mostly short.)
  void leave_to_others(const stage& one) {
    const auto entries = packed_size(one.members.size());
    for (const std::size_t k : gradients_.measured_elsewhere)
      std::ranges::fill(gram_of(one).subspan(k * entries, entries), 0.0);
  }

  slice window_of(const stage& one) const { return {segments_, one.part(), one.part().begin}; }
  vector_list vectors_of(const stage& one) const { return vector_list(vectors_).first(one.members.size()); }
  std::span<const std::size_t> leaf_counts_of(const stage& one) const {
    return std::span(leaf_counts_).first(one.members.size());
  }
  round_memory memory_of(const stage& one) {
    const auto n = one.members.size();
    return {n,
            gram_of(one),
            std::span(weights_).first(segments_.size() * n),
            std::span(norms_).first(n),
            std::span(total_).first(packed_size(n)),
            weigh_scratch_,
            unsettled_};
  }
  /// @pre the stage combines all segments
  void describe_whole_gradients(recombined_range& found, std::size_t k, bool whole_model) const {
    const auto& lengths = gradients_.lengths;
    found.length = lengths[k];
    if (whole_model) {
      found.length = 0;
      for (const std::size_t length : lengths) found.length += length;
    }
    for (const std::size_t elsewhere : gradients_.measured_elsewhere) {
      if (whole_model)
        found.measured_elsewhere.push_back(found.parts[elsewhere]);
      else if (elsewhere == k)
        found.measured_elsewhere.push_back({0, found.elements.size()});
    }
  }

  space_ref space_;
  rule_ref rule_;
  owned_object held_inner_;
  rule_ref inner_;
  bool measures_all_;
  const shard_layout& gradients_;
  segments_view segments_;
  std::vector<double> gram_, weights_, norms_, total_;
  std::vector<const void*> vectors_;
  std::vector<std::size_t> leaf_counts_, unsettled_;
  weigh_scratch weigh_scratch_;
  std::vector<double> recombine_scratch_;
  std::optional<recombination> recombination_;
};

}  // namespace adasum::detail
