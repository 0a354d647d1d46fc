// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <numeric>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "../../core/concepts.hpp"
#include "../../core/optional_members.hpp"
#include "../../core/segments.hpp"
#include "../../core/stage.hpp"
#include "../local/combine_window.hpp"
#include "../local/nonfinite.hpp"
#include "../local/recombine.hpp"
#include "engine_settings.hpp"

namespace adasum::detail {

/// The arithmetic of stages on one rank: measure, weigh, mix, recombine. What a stage that is weighed together with
/// others (planned_stage) leaves of Gram matrices and weights stays until the next run. Knows no other rank: vectors are
/// brought to it, and who adds inner products over the ranks does so in gram_of() and in what recombine() returns.
template <scalar T, execution_space<T> Space, rule Rule, rule Inner>
class local_stages {
  template <rule R>
  using recombination_under = recombination<T, Space, R>;

 public:
  /// Doubles that a stage of n members adds over the ranks at once, at most.
  static std::size_t most_products(std::size_t segments, std::size_t n) {
    return std::max({segments * packed_size(n), recombination_under<Rule>::scratch_size(segments, n),
                     recombination_under<Inner>::scratch_size(segments, n)});
  }

  /// @param space, rule, settings, segments  must outlive this object
  /// @param members                          the most vectors of a stage
  local_stages(const Space& space, Rule& rule, const engine_settings<Inner>& settings, segments_view segments,
               std::size_t members)
      : space_(space),
        rule_(rule),
        inner_(settings.inner),
        measures_all_(settings.measure),
        gradients_(settings.gradients),
        segments_(segments),
        gram_(segments.size() * packed_size(members)),
        inner_gram_(has_inner_pieces(settings) ? gram_.size() : 0),
        weights_(segments.size() * members),
        norms_(members),
        total_(packed_size(members)),
        vectors_(members),
        leaf_counts_(members),
        weigh_scratch_(members),
        recombine_scratch_(most_products(segments.size(), members)) {
    unsettled_.reserve(segments.size());
  }

  /// Which segments of the whole gradient hold Inf or NaN.
  void find_nonfinite_segments(const T* gradient, std::span<unsigned char> flags) {
    find_nonfinite<T>(space_, gradient, segments_, std::span(recombine_scratch_).first(segments_.size()), flags);
  }
  /// A gradient that takes no part is zero.
  void clear(T* gradient) {
    const T* const in = gradient;
    std::ranges::fill(std::span(weights_).first(segments_.size()), 0.0);
    space_.mix(whole(segments_), std::span(&in, 1), weights_.data(), gradient);
  }

  /// Member i's vector on this rank's part, and how many gradients it combines.
  void set_vector(std::size_t i, const T* vector, std::size_t gradients) {
    vectors_[i] = vector;
    leaf_counts_[i] = gradients;
  }

  bool is_measured(const planned_stage& stage) const {
    return measures_all_ || (stage.inner ? needs_gram<Inner> : needs_gram<Rule>);
  }
  /// The members' Gram matrix for each segment: of this rank's part after measure().
  std::span<double> gram_of(const planned_stage& stage) {
    const auto entries = packed_size(stage.members.size());
    return std::span(stage.inner && stage.pieces_needed > 0 ? inner_gram_ : gram_)
        .subspan(stage.segments.begin * entries, stage.segments.size() * entries);
  }
  /// Members that take no part do not show in the Gram matrices: they were measured before that was known.
  void leave_out_absent(const planned_stage& stage) {
    const auto n = stage.members.size();
    const auto gram = gram_of(stage);
    for (std::size_t i = 0; i < n; ++i)
      if (leaf_counts_[i] == 0)
        for (std::size_t at = 0; at < gram.size(); at += packed_size(n))
          for (std::size_t j = 0; j < n; ++j) gram[at + packed_index(i, j)] = 0;
  }
  void measure(const planned_stage& stage) {
    if (!is_measured(stage)) return std::ranges::fill(gram_of(stage), 0.0), void();
    with_rule(stage, [&]<class R>(R&) {
      measure_for<R, T>(space_, window_of(stage), vectors_of(stage), gram_of(stage).data());
    });
    space_.fence();
    leave_to_others(stage);
  }

  /// Weights from the Gram matrices. @param observe  observe(k, segment_outcome) for each segment that is settled
  /// @return what the rule threw, if it did: see weigh_window
  template <class Observer>
  std::exception_ptr weigh(const planned_stage& stage, const Observer& observe) {
    std::exception_ptr problem;
    with_rule(stage, [&](auto& rule) {
      weigh_window(rule, leaf_counts_of(stage), stage.segments.begin, memory_of(stage), limits_of(stage), problem);
      if (problem) return;
      if (stage.weighed_together) zero_absent_weights(memory_of(stage));
      for_each_settled(memory_of(stage), weighs_whole_model(rule),
                       [&](std::size_t k) { observe(k, outcome_of(memory_of(stage), k)); });
    });
    return problem;
  }

  /// This rank's part of the combination, of the segments that are settled. @param written  see mix_window
  template <class Written>
  void mix(const planned_stage& stage, T* out, const Written& written) {
    with_rule(stage, [&](auto& rule) {
      mix_window<T>(space_, rule, window_of(stage), vectors_of(stage), memory_of(stage), out, written);
    });
    space_.fence();
  }

  // ── the segments that are not ──

  /// Whether there may be some, and the rule may throw on a rank that then would not know. See may_leave_unsettled.
  bool may_leave_unsettled(const planned_stage& stage) {
    bool may = false;
    with_rule(stage, [&]<class R>(R& rule) {
      if constexpr (may_fail_undecided<R>) may = detail::may_leave_unsettled(rule, memory_of(stage), limits_of(stage));
    });
    return may;
  }
  bool has_unsettled() const { return !unsettled_.empty(); }

  /// @param pieces   the stages among which those are that are weighed together, if this one stands for them: this rank's
  ///                 parts then lie one behind the other
  /// @param problem  what this rank has failed with already, if it has
  template <class Stages>
  void begin_recombining(const planned_stage& stage, const Stages& pieces, std::exception_ptr problem) {
    with_rule(stage, [&]<class R>(R& rule) {
      auto& run = this->template run_of<R>();
      const bool whole_model = weighs_whole_model(rule);
      run.emplace(space_, rule, vectors_of(stage), leaf_counts_of(stage), std::span<const std::size_t>(unsettled_),
                  whole_model ? stage.segments.size() : 1, stage.segments.begin,
                  elements_of(stage, whole_model, pieces), std::span(recombine_scratch_), std::move(problem));
    });
  }
  /// @return what is to be added over the ranks next; nothing if all is there, or has failed
  std::span<double> recombine(const planned_stage& stage) {
    std::span<double> values;
    with_rule(stage, [&]<class R>(R&) { values = this->template run_of<R>()->advance(); });
    return values;
  }
  /// What failed on this rank from outside.
  void fail_recombining(const planned_stage& stage, const std::exception_ptr& problem) {
    with_rule(stage, [&]<class R>(R&) { this->template run_of<R>()->fail(problem); });
  }
  /// Writes the recombined segments. @param observe, written  as above
  /// @throws what failed; communication_error: on another rank
  template <class Observer, class Written>
  void finish_recombining(const planned_stage& stage, T* out, const Observer& observe, const Written& written) {
    with_rule(stage, [&]<class R>(R&) {
      auto& run = this->template run_of<R>();
      finish_recombination(space_, *run, out, observe, written);
      run.reset();
    });
    if (!stage.weighed_together) unsettled_.clear();  // the pieces are not to be mixed then
  }
  /// What has failed on this rank in recombining; null if nothing has.
  std::exception_ptr problem_in_recombining() const {
    if (by_rule_) return by_rule_->problem();
    if (by_inner_) return by_inner_->problem();
    return nullptr;
  }
  void forget_recombining() {
    by_rule_.reset();
    by_inner_.reset();
  }

 private:
  template <class Action>
  void with_rule(const planned_stage& stage, Action&& action) {
    if constexpr (std::is_same_v<Inner, no_inner_rule>)
      action(rule_);
    else
      stage.inner ? action(inner_) : action(rule_);
  }
  template <class R>
  auto& run_of() {
    if constexpr (std::is_same_v<R, Rule>)
      return by_rule_;
    else
      return by_inner_;
  }

  static constexpr weighing_limits limits_of(const planned_stage& stage) {
    return limits_for<T>(stage.members.size(), recombines_in_double<Space, T>);
  }
  static bool has_inner_pieces(const engine_settings<Inner>& settings) {
    return std::ranges::any_of(settings.stages,
                               [](const auto& stage) { return stage.inner && stage.pieces_needed > 0; });
  }
  /// What other ranks have as well counts once. (It has been measured here, too: such segments are mostly short.)
  void leave_to_others(const planned_stage& stage) {
    const auto entries = packed_size(stage.members.size());
    for (const std::size_t k : gradients_.measured_elsewhere)
      std::ranges::fill(gram_of(stage).subspan(k * entries, entries), 0.0);
  }
  /// One that takes no part may hold anything, and may not be read.
  void zero_absent_weights(const round_memory& memory) {
    for (std::size_t x = 0; x < memory.weights.size(); ++x)
      if (leaf_counts_[x % memory.n] == 0) memory.weights[x] = 0;
  }
  slice window_of(const planned_stage& stage) const {
    return {segments_.part(stage.segments.begin, stage.segments.size()), stage.part(), stage.part().begin};
  }
  std::span<const T* const> vectors_of(const planned_stage& stage) const {
    return std::span(vectors_).first(stage.members.size());
  }
  std::span<const std::size_t> leaf_counts_of(const planned_stage& stage) const {
    return std::span(leaf_counts_).first(stage.members.size());
  }
  round_memory memory_of(const planned_stage& stage) {
    const auto n = stage.members.size();
    return {n,
            gram_of(stage),
            std::span(weights_).subspan(stage.segments.begin * n, stage.segments.size() * n),
            std::span(norms_).first(n),
            std::span(total_).first(packed_size(n)),
            weigh_scratch_,
            unsettled_};
  }
  template <class Stages>
  auto elements_of(const planned_stage& stage, bool whole_model, const Stages& pieces) const {
    return [this, &stage, whole_model, &pieces](std::size_t k) {
      auto found = recombined_elements(window_of(stage), k, whole_model);
      if (stage.weighed_together) found.parts = parts_in(pieces);
      if (gradients_.are_cut()) describe_whole_gradients(found, k, whole_model);
      return found;
    };
  }
  /// @pre the stage combines all segments
  void describe_whole_gradients(recombined_range& found, std::size_t k, bool whole_model) const {
    const auto& lengths = gradients_.lengths;
    found.length = whole_model ? std::accumulate(lengths.begin(), lengths.end(), std::size_t{0}) : lengths[k];
    for (const std::size_t elsewhere : gradients_.measured_elsewhere) {
      if (whole_model)
        found.measured_elsewhere.push_back(found.parts[elsewhere]);
      else if (elsewhere == k)
        found.measured_elsewhere.push_back({0, found.elements.size()});
    }
  }
  /// Where the segments are.
  template <class Stages>
  std::vector<index_range> parts_in(const Stages& pieces) const {
    std::vector<index_range> parts(segments_.size());
    std::size_t begin = 0;
    for (const auto& piece : pieces) {
      if (!piece.weighed_together) continue;
      const auto window = window_of(piece);
      for (std::size_t k = 0; k < piece.segments.size(); ++k) {
        const auto elements = window.local(k);
        parts[piece.segments.begin + k] = {begin + elements.begin, begin + elements.end};
      }
      begin += piece.part().size();
    }
    return parts;
  }

  const Space& space_;
  Rule& rule_;
  Inner inner_;
  bool measures_all_;
  const whole_gradients& gradients_;
  segments_view segments_;
  std::vector<double> gram_, inner_gram_, weights_, norms_, total_;
  std::vector<const T*> vectors_;
  std::vector<std::size_t> leaf_counts_, unsettled_;
  weigh_scratch weigh_scratch_;
  std::vector<double> recombine_scratch_;
  std::optional<recombination_under<Rule>> by_rule_;
  std::optional<recombination_under<Inner>> by_inner_;
};

}  // namespace adasum::detail
