// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "../../core/concepts.hpp"
#include "../../core/optional_members.hpp"
#include "../../core/report.hpp"
#include "agreement.hpp"
#include "agreement_in_run.hpp"
#include "allgather.hpp"
#include "bound_stages.hpp"
#include "engine_settings.hpp"
#include "exclusion.hpp"
#include "norms_of_parts.hpp"
#include "report_stages.hpp"
#include "row_sums_of_ranks.hpp"
#include "steps.hpp"

namespace adasum::detail {

/// What is done in each step of a reduction under a rule that needs norms and row sums alone (row_sum_rule), along stages
/// of any schedule: two allreduces, in place of slices of all P gradients and their P×P Gram matrix.
///
///   1.  ḡ = (1/P) Σⱼ gⱼ            along the stages, down and back, into memory of its own; not for norms alone
///   2.  ‖gᵢ‖, gᵢ·ḡ / ‖gᵢ‖          on rank i, per segment; gathered by all ranks
///   3.  c = rule(‖gᵢ‖, P gᵢ·ḡ)     on every rank, of the same numbers: the same weights
///   4.  Σᵢ cᵢ gᵢ                   along the stages, in place. The first stage of a gradient multiplies it by its weight
///
/// The mean in place of the sum, because a sum of 16-bit elements may overflow where gradients do not.
///
/// For N elements, S segments, S' = 1 for rules of the whole model and S otherwise, with halving of radix q (P = qᴸ, L
/// stages): each rank sends 4(P-1)/P·N elements and 8(S + S')(P-1) bytes, in 4L + ⌈log₂P⌉ exchanges one after
/// another. Arithmetic: 2N(P-1)/P·q/(q-1) terms and 3N products, at any P. Memory: N elements, what messages need
/// (docs/scale.md), and 8(S + S')P + 16·P·S bytes (the latter is the report). Norms alone: half of the elements and
/// terms, N products, and no N elements.
///
/// A gradient may come in pieces, which have stages of their own: 1. then begins with each of them, and the rest when all are
/// there. Elements are added along the same tree however they are cut, and norms and row sums are not cut at all: so the
/// result has the same bits.
///
/// Accuracy: ḡ is rounded to T. On the way from a gradient to ḡ, each of the stages rounds once, and multiplies and adds
/// in T where the space can do nothing else. (So does the result: where its terms cancel, their roundings stay.) With r
/// roundings of at most u each (stages of n members: r ≤ Σ (n + 1)),
///
///     |error of gᵢ·Σgⱼ| ≤ r u (1 + r u) ‖gᵢ‖ Σⱼ‖gⱼ‖,
///
/// beside that of the inner products themselves. Roundings that know nothing of gᵢ add up to about u √r ‖gᵢ‖ ‖ḡ‖ P / √N.
/// Norms are as accurate as in a Gram matrix.
///
/// ‖result‖ is no function of these numbers; it is measured on the result where inner products are always measured
/// (options::measure), and NaN otherwise.
template <scalar T, execution_space<T> Space, communicator_for<Space> Comm, row_sum_rule Rule>
class run_of_sums {
 public:
  run_of_sums(Space space, Comm comm, Rule& rule, segments_view segments, engine_settings<no_inner_rule> settings)
      : space_(std::move(space)),
        comm_(std::move(comm)),
        segments_(segments),
        settings_(std::move(settings)),
        rule_(rule),
        report_(report_writer(ranks(), segments.size(), name_of(rule), settings_.schedule_name)),
        exclusion_(comm_.size(), settings_.gradients, segments.size(), settings_.nonfinite, settings_.leaf_ranks),
        stages_(space_, comm_, segments, std::move(settings_.stages), by_messages(settings_.transport), settings_.parts,
                report_, [](std::size_t) { return std::size_t{0}; }),
        numbers_(space_, rule, segments, ranks()),
        finite_(segments.size()) {
    if (!settings_.leaf_ranks.empty()) report_.reserve_order();
    report_.written().set_wire(settings_.transport.wire);
    std::size_t members = 1;
    for (const auto& stage : stages_.all()) members = std::max(members, stage.members.size());
    vectors_.resize(members);
    stage_weights_.resize(members * segments.size());
    if constexpr (needs_row_sums<Rule>) mean_.emplace(space_.template allocate<T>(segments.all().end));
    if (stages_.has_parts() && settings_.measure)
      norms_of_parts_.emplace(space_, segments, settings_.parts.wanted[static_cast<std::size_t>(comm_.rank())],
                              ranks());
  }
  run_of_sums(const run_of_sums&) = delete;
  run_of_sums& operator=(const run_of_sums&) = delete;

  T* shared_gradient() const { return nullptr; }
  bool is_in_place() const { return false; }
  const report& last_report() const { return report_.last(); }

  /// A step's stage is counted on from one sum to the next.
  std::vector<step> steps() const {
    const auto all = stages_.all();
    std::vector<step> steps{{step_kind::agree, 0}, {step_kind::begin, 0}};
    if (exclusion_.is_decided()) steps.push_back({step_kind::exclude, 0, all.back().pieces_needed});
    const auto add_sum = [&](std::size_t first_of_sum) {
      for_each_piece(all, [&](std::size_t first, std::span<const bound_stage<T>> piece) {
        const auto add = [&](step_kind kind, std::size_t stage) {
          if (kind != step_kind::measure && kind != step_kind::sum)
            steps.push_back({kind, first_of_sum + first + stage, piece.front().pieces_needed});
        };
        add_steps_down(piece, add);
        const bool rounds = settings_.transport.wire != wire_format::same;
        if (first_of_sum > 0 && stages_.has_parts())
          add_steps_to_owners(piece, rounds, *stages_.exchanges_parts(), add);
        else
          add_steps_back(piece, rounds, add);
      });
    };
    if constexpr (needs_row_sums<Rule>) add_sum(0);
    steps.push_back({step_kind::measure, 0, all.back().pieces_needed});
    steps.push_back({step_kind::gather, 0});
    add_sum(all.size());
    if (norms_of_parts_) steps.push_back({step_kind::gather_norms, 0});
    steps.push_back({step_kind::finish, 0});
    return steps;
  }

  /// A run is to begin, on the gradient at `data`.
  void prepare(T* data, bool posts) {
    data_ = data;
    posts_ = posts;
    withdrawn_ = false;
    agreement_.reset();
    gives_up_ = nullptr;
    by_message().begin_run(data, posts);  // agree comes before begin
  }
  /// For the step agree.
  void prepare_agreement(const call_signature& mine, agreement_memory& memory) {
    agreement_.prepare(agreement(mine, !memory.empty(), segments_, comm_.rank(), comm_.size(), memory));
  }

  /// Takes a step, or the part of it that follows what it has waited for. @param turn  how often it has waited
  progress take(const step& next, std::size_t turn) {
    const auto count = stages_.all().size();
    const bool is_result = next.stage >= count;
    const auto number = is_result ? next.stage - count : next.stage;
    const auto& stage = stages_.all()[number];
    T* const to = is_result || !mean_ ? data_ : mean_->data();
    const bool is_first = number == 0 || stages_.all()[number - 1].pieces_needed != stage.pieces_needed;
    T* const from = is_first ? data_ : to;
    switch (next.kind) {
      case step_kind::agree: return agreement_.take(by_message());
      case step_kind::begin: return begin();
      case step_kind::exclude: return exclude(turn);
      case step_kind::bring: return by_message().bring(stage, from, turn);
      case step_kind::combine: return combine(stage, from, to, is_result);
      case step_kind::round_result: return round_result(stage, to);
      case step_kind::deliver: return by_message().deliver(stage, to, turn);
      case step_kind::measure: return measure();
      case step_kind::gather: return gather(turn);
      case step_kind::hand_over: return by_message().deliver(stages_.to_owners(), to, turn);
      case step_kind::gather_norms: return gather_norms(turn);
      case step_kind::finish: return finish();
      case step_kind::sum:
      case step_kind::weigh: break;
    }
    return progress::done;
  }
  /// Whether what the last step waits for is there. @param block  wait until it is
  bool arrived(bool block) { return agreement_.arrived(by_message(), block); }

  // ── a rank that has failed: see run_of_stages ──

  void withdraw() {
    withdrawn_ = true;
    stages_.withdraw();
  }
  bool withdrawn() const { return withdrawn_; }
  void give_up(const std::exception_ptr& problem) { gives_up_ = problem; }
  std::exception_ptr reason_to_give_up() const { return gives_up_; }

 private:
  static transport_settings by_messages(transport_settings how) {
    how.in_shared_memory = how.records = false;
    return how;
  }
  std::size_t ranks() const { return static_cast<std::size_t>(comm_.size()); }
  auto& by_message() { return stages_.by_message(); }
  /// Whether this rank's vectors are out of reach: it has failed, or its gradient may be gone.
  bool has_no_gradient() const { return withdrawn_ || gives_up_; }

  progress begin() {
    report_.begin(fallbacks_of(rule_));
    stages_.begin_run(data_, posts_);
    return progress::done;
  }

  progress exclude(std::size_t turn) {
    if (turn == 0) {
      if (!has_no_gradient()) find_nonfinite<T>(space_, data_, segments_, finite_, exclusion_.mine());
      flags_ = exclusion_.exchanges(comm_.rank(), comm_.size());
    }
    if (by_message().next_of(flags_) == progress::waits) return progress::waits;
    if (!withdrawn_) exclusion_.decide(report_.written());
    return progress::done;
  }

  // ── a sum ──

  /// @param from, to  the members' vectors, and their combination
  progress combine(const bound_stage<T>& stage, const T* from, T* to, bool is_result) {
    if (has_no_gradient()) return progress::done;
    const auto n = stage.members.size();
    for (std::size_t i = 0; i < n; ++i) vectors_[i] = stage.elements->vector(stage, i, from);
    if (is_result)
      find_weights_in_result(stage);
    else
      find_weights_in_mean(stage);
    mix_accurately<T>(space_, slice{segments_, stage.part(), stage.part().begin},
                      std::span<const T* const>(vectors_).first(n), stage_weights_.data(), to + stage.part().begin);
    space_.fence();
    return progress::done;
  }

  /// Each vector is the mean of the gradients in it that take part. One of which none does is not read.
  void find_weights_in_mean(const stage& stage) {
    std::size_t all = 0;
    for (std::size_t i = 0; i < stage.members.size(); ++i) all += exclusion_.gradients(stage, i);
    for_each_stage_weight(stage, [&](std::size_t i, std::size_t) {
      const auto some = exclusion_.gradients(stage, i);
      return some == 0 ? 0.0 : static_cast<double>(some) / static_cast<double>(all);
    });
  }
  /// A gradient meets its weight where it meets another one.
  void find_weights_in_result(const stage& stage) {
    for_each_stage_weight(stage, [&](std::size_t i, std::size_t k) {
      const bool weighs = stage.members.size() > 1 && stage.leaf_count(i) == 1;
      return weighs ? numbers_.weight(stage.leaf_offsets[i], k) : 1.0;
    });
  }
  template <class Weight>
  void for_each_stage_weight(const stage& stage, const Weight& weight) {
    const auto n = stage.members.size();
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t k = 0; k < segments_.size(); ++k) stage_weights_[k * n + i] = weight(i, k);
  }

  progress round_result(const bound_stage<T>& stage, T* to) {
    if (!has_no_gradient()) by_message().round(stage, to);
    return progress::done;
  }

  // ── between the sums ──

  progress measure() {
    if (has_no_gradient()) return progress::done;
    const bool takes_part = exclusion_.of_rank(comm_.rank());
    numbers_.measure(takes_part ? data_ : nullptr, mean_ ? mean_->data() : nullptr);
    return progress::done;
  }

  progress gather(std::size_t turn) {
    if (turn == 0) {
      gathering_ = numbers_.exchanges(comm_.rank(), comm_.size());
      by_message().begin_vectors();
    }
    if (by_message().next_of(gathering_) == progress::waits) return progress::waits;
    if (has_no_gradient()) return progress::done;
    numbers_.weigh(rule_, settings_.leaf_ranks, exclusion_);
    for (std::size_t leaf = 0; leaf < ranks(); ++leaf)
      for (std::size_t k = 0; k < segments_.size(); ++k)
        report_.written().row(leaf)[k] = {numbers_.norm(leaf, k), numbers_.weight(leaf, k)};
    return progress::done;
  }

  progress gather_norms(std::size_t turn) {
    if (turn == 0) {
      if (!has_no_gradient()) norms_of_parts_->measure(data_);
      gathering_ = norms_of_parts_->exchanges(comm_.rank(), comm_.size());
    }
    return by_message().next_of(gathering_);
  }

  progress finish() {
    if (has_no_gradient()) return progress::done;
    auto& found = report_.written();
    if (norms_of_parts_)
      norms_of_parts_->add(found.result_norms());
    else if (settings_.measure)
      numbers_.measure_norms(data_, found.result_norms());
    else
      std::ranges::fill(found.result_norms(), std::numeric_limits<double>::quiet_NaN());
    found.set_measured(true);
    found.set_lost_on_wire(by_message().losses());
    report_.finish(settings_.leaf_ranks, exclusion_.all(), by_message().bytes_sent(), fallbacks_of(rule_));
    return progress::done;
  }

  Space space_;
  Comm comm_;
  segments_view segments_;
  engine_settings<no_inner_rule> settings_;
  Rule& rule_;
  report_stages report_;
  exclusion exclusion_;
  bound_stages<T, Space, Comm> stages_;
  row_sums_of_ranks<T, Space, Rule> numbers_;
  std::vector<double> finite_;         // for looking for what is not
  std::vector<double> stage_weights_;  // by segment and member
  std::vector<const T*> vectors_;      // of the members of a stage
  std::optional<norms_of_parts<T, Space>> norms_of_parts_;
  std::optional<decltype(std::declval<const Space&>().template allocate<T>(0))> mean_;

  // Of the run that is under way.
  T* data_ = nullptr;
  bool posts_ = false;  // whether exchanges are posted
  bool withdrawn_ = false;
  std::exception_ptr gives_up_;
  agreement_in_run agreement_;
  allgather flags_, gathering_;
};

}  // namespace adasum::detail
