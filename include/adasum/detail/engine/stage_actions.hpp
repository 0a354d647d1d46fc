// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "../../core/error.hpp"
#include "../../core/report_writer.hpp"
#include "../../core/segments.hpp"
#include "agreement.hpp"
#include "bound_stages.hpp"
#include "engine_settings.hpp"
#include "local_stages.hpp"
#include "nonfinite_vote.hpp"
#include "small_exchanges.hpp"

namespace adasum::detail {

/// What is done in each step of a reduction (bound_stages.hpp). Holds all buffers, so that running allocates nothing. Waits for
/// nobody unless told to: a step that waits is taken again when arrived() has said that what it waits for is there.
class stage_actions {
 public:
  explicit stage_actions(engine_settings settings)
      : settings_(std::move(settings)),
        local_(settings_, most_members(settings_.stages)),
        report_(settings_.gradients.count(settings_.comm.size()), settings_.segments.size(), settings_.rule.name(),
                settings_.schedule_name),
        nonfinite_vote_(settings_),
        stages_(settings_, report_, [&](std::size_t members) { return local_.most_products(members); }) {
    report_.reserve_excluded();
    if (!settings_.leaf_ranks.empty()) report_.reserve_order();
    if (rounds()) report_.set_wire(settings_.transport.wire);
  }
  stage_actions(const stage_actions&) = delete;
  stage_actions& operator=(const stage_actions&) = delete;

  std::byte* shared_gradient() const { return stages_.shared_gradient(); }
  bool is_in_place() const { return stages_.is_in_place(); }
  const report& last_report() const { return report_.get(); }

  std::vector<step> steps() const {
    return stages_.steps(nonfinite_vote_.is_decided(), rounds(),
                         [&](const bound_stage& stage) { return local_.is_measured(stage); });
  }

  /// A run is to begin, on the gradient at `data`.
  void prepare(std::byte* data, bool posts) {
    data_ = callers_ = data;
    posts_ = posts;
    announced_ = votes_in_full_ = false;
    withdrawn_ = false;
    waits_for_agreement_ = waits_for_votes_ = false;
    gives_up_ = nullptr;
    by_message().begin_run(posts);  // agree comes before begin
  }
  /// For the step agree. @param is_usual  see stage_executor::start
  void prepare_agreement(hashed_signature mine, agreement_memory& memory, bool is_usual) {
    may_announce_ = is_usual && !last_failed_ && stages_.begins_with_all() && !nonfinite_vote_.is_decided();
    agreement_.emplace(mine, !memory.empty(), settings_.segments, settings_.comm.rank(), settings_.comm.size(), memory,
                       0, stages_.shared() ? stages_.shared()->next_run() : 0);
  }

  /// Takes a step, or the part of it that follows what it has waited for. @param turn  how often it has waited
  progress take(const step& next, std::size_t turn) {
    turn_ = turn;
    settings_.comm.note_activity(withdrawn_ ? reduction_activity::withdrawn : reduction_activity::scheduled);
    const auto& stage = stages_.all()[next.stage];
    switch (next.kind) {
      case step_kind::agree: return agree();
      case step_kind::begin: return begin();
      case step_kind::exclude: return exclude();
      case step_kind::bring: return bring(stage);
      case step_kind::measure: return measure(stage);
      case step_kind::sum: return wait_for(*stage.products, stage.products->sum(stage, local_.gram_of(stage), turn_));
      case step_kind::combine: return combine(stage, next.stage + 1 == stages_.all().size());
      case step_kind::round_result: return round_result(stage);
      case step_kind::deliver: return wait_for(*stage.elements, stage.elements->deliver(stage, data_, turn_));
      case step_kind::hand_over: return wait_for(by_message(), by_message().deliver(stages_.to_owners(), data_, turn_));
      case step_kind::finish: return finish();
    }
    return progress::done;
  }
  /// Whether what the last step waits for is there. @param block  wait until it is
  bool arrived(bool block) {
    if (std::exchange(waits_for_votes_, false)) return votes_arrived(block);
    try {
      return waits_for_->arrived(block);
    } catch (const timeout_error&) {
      throw;
    } catch (...) {  // in the step agree, the others wait for the messages that follow
      if (!waits_for_agreement_ || !agreement_->fail(std::current_exception())) throw;
      return true;
    }
  }

  // ── a rank that has failed ──
  /// From here on, steps only let nobody wait: this rank's exchanges are made, with empty messages, and what it gets is
  /// thrown away. The last of them waits until nobody is at work on this rank's gradient.
  /// @return whether all ranks are known to have been about to do the same
  bool withdraw() {
    withdrawn_ = last_failed_ = true;
    local_.forget_recombining();
    stages_.withdraw();
    data_ = nullptr;
    if (!std::exchange(announced_, false)) return true;
    stages_.shared()->watch(nullptr);
    return settings_.comm.votes()->pass_if_same();
  }
  bool withdrawn() const { return withdrawn_; }
  /// Not all ranks do the same: this one's run has not begun, and it goes back to agree, to find out what is different.
  void take_back() {
    stages_.shared()->watch(nullptr);
    stages_.shared()->take_back_run();
    data_ = callers_;
    announced_ = false;
    votes_in_full_ = true;
  }
  /// The gradient may be gone: from here on, it is not touched, and sums of a recombination say that this rank fails.
  void give_up(const std::exception_ptr& problem) { gives_up_ = problem; }
  /// What has failed on this rank, and was put off; null if nothing was.
  std::exception_ptr reason_to_give_up() const { return gives_up_ ? gives_up_ : local_.problem_in_recombining(); }

 private:
  /// What the step combine does next.
  enum class part { confirm, mix, recombine };

  /// Whether elements are rounded on their way.
  bool rounds() const { return settings_.transport.wire != wire_format::same && !stages_.is_in_place(); }
  static std::size_t most_members(const std::vector<stage>& stages) {
    std::size_t most = 1;
    for (const auto& one : stages) most = std::max(most, one.members.size());
    return most;
  }
  messages& by_message() { return stages_.by_message(); }
  progress wait_for(transport& by, progress made) {
    waits_for_ = &by;
    return made;
  }

  auto note_in_report(const bound_stage& stage) {
    return [this, &stage, measured = local_.is_measured(stage)](std::size_t k, const segment_outcome& outcome) {
      note(stage, k, outcome, measured);
    };
  }
  /// Segment k has been combined. Weights multiply along the path from a gradient to the root.
  void note(const stage& stage, std::size_t k, const segment_outcome& outcome, bool measured) {
    constexpr auto unknown = std::numeric_limits<double>::quiet_NaN();
    for (std::size_t i = 0; i < stage.members.size(); ++i) {
      const auto first = stage.leaf_offsets[i], last = stage.leaf_offsets[i + 1];
      if (last - first == 1)
        report_.row(first)[k] = {measured ? outcome.norms[i] : unknown, outcome.weights[i]};
      else
        for (auto leaf = first; leaf < last; ++leaf) report_.row(leaf)[k].weight *= outcome.weights[i];
    }
    report_.result_norms()[k] = measured ? outcome.result_norm : unknown;
    if (outcome.recombined) report_.count_recombined_segment();
  }
  /// Tells the transport of the stage what has been written of the result, counted from the beginning of this rank's part.
  auto deliver_early(const bound_stage& stage) {
    return [this, &stage](index_range written) {
      const auto begin = stage.part().begin;
      stage.elements->deliver_early(stage, data_, {begin + written.begin, begin + written.end});
    };
  }

  // ── beginning and end ──
  progress agree() {
    if (auto* const shared = settings_.comm.votes(); shared && !agreement_->is_settled()) {
      if (turn_ == 0 && !votes_in_full_) {
        const bool announces = may_announce_ && !agreement_->has_problem();
        shared->begin(agreement_->vote(), announces);
        announced_ = announces && !shared->follows_failure();
        if (announced_) {
          stages_.shared()->watch(shared);
          return progress::done;
        }
      }
      waits_for_votes_ = turn_ == 0 || shared->next();
      if (waits_for_votes_) return progress::waits;
      agreement_->settle(shared->all());
    }
    const auto made = wait_for(by_message(), by_message().next_of(*agreement_));
    waits_for_agreement_ = made == progress::waits;
    if (waits_for_agreement_) return made;
    agreement_->require();
    if (stages_.shared()) stages_.shared()->set_next_run(agreement_->run());
    return made;
  }

  bool votes_arrived(bool block) {
    try {
      waits_for_votes_ = !settings_.comm.votes()->arrived(block);
      return !waits_for_votes_;
    } catch (const communication_error&) {
      if (!votes_by_messages_now(settings_.comm)) throw;
      return true;
    }
  }

  progress begin() {
    if (!announced_) report_.begin();
    fallbacks_before_ = settings_.rule.fallbacks();
    data_ = stages_.begin_run(gives_up_ ? nullptr : data_, posts_);
    return progress::done;
  }
  /// Ranks that take no part are left out before anything is combined, or written where others read it.
  progress exclude() {
    if (turn_ == 0) {
      if (!withdrawn_ && !gives_up_) local_.find_nonfinite_segments(data_, nonfinite_vote_.mine());
      flags_ = nonfinite_vote_.exchanges(settings_.comm.rank(), settings_.comm.size());
    }
    if (wait_for(by_message(), by_message().next_of(flags_)) == progress::waits) return progress::waits;
    if (withdrawn_) return progress::done;
    nonfinite_vote_.decide(report_);
    if (!gives_up_ && !nonfinite_vote_.of_rank(settings_.comm.rank())) local_.clear(data_);
    return progress::done;
  }
  progress bring(const bound_stage& stage) {
    const auto made = wait_for(*stage.elements, stage.elements->bring(stage, data_, turn_));
    if (made == progress::done && std::exchange(announced_, false)) {
      stages_.shared()->watch(nullptr);
      settings_.comm.votes()->pass();
      report_.begin();  // until then, ranks may differ, and the report is that of the last run
    }
    return made;
  }
  progress round_result(const bound_stage& stage) {
    if (!withdrawn_) by_message().round(stage, data_);
    return progress::done;
  }
  progress leave() {
    auto* const shared = stages_.shared();
    return shared == nullptr || turn_ > 0 ? progress::done : wait_for(*shared, shared->leave());
  }
  progress finish() {
    if (withdrawn_) return leave();
    last_failed_ = false;
    settings_.space.fence();
    stages_.end_run();
    const bool measured = settings_.measure || (settings_.rule.needs_gram() &&
                                                (!settings_.has_inner_rule || local_.inner_rule().needs_gram()));
    report_.set_measured(measured);
    if (settings_.has_inner_rule && !measured)
      report_.forget_norms();  // which stages under one of the rules may have measured
    if (!settings_.leaf_ranks.empty()) report_.reorder(settings_.leaf_ranks);
    report_.finish_excluded(nonfinite_vote_.all());
    report_.set_bytes_sent(by_message().bytes_sent());
    report_.set_fallbacks(settings_.rule.fallbacks() - fallbacks_before_);
    return progress::done;
  }

  // ── a stage: bring → measure → sum → combine (weigh → mix → recombine), and back: deliver ──
  // What knows no other rank is skipped once this one has withdrawn.
  progress measure(const bound_stage& stage) {
    if (withdrawn_) return progress::done;
    for (std::size_t i = 0; i < stage.members.size(); ++i)
      local_.set_vector(i, stage.elements->vector(stage, i, data_), nonfinite_vote_.gradients(stage, i));
    local_.measure(stage);
    return progress::done;
  }
  progress combine(const bound_stage& stage, bool last) {
    if (withdrawn_) return progress::done;
    if (turn_ == 0) weigh(stage);
    if (part_ == part::confirm && confirm(stage) == progress::waits) return progress::waits;
    if (part_ == part::mix) {
      mix(stage, last);
      if (!local_.has_unsettled()) return progress::done;
      begin_recombining(stage);
    }
    return recombine(stage, last);
  }
  void weigh(const bound_stage& stage) {
    const auto problem = local_.weigh(stage, note_in_report(stage));
    part_ = stage.sum_over.size() > 1 && local_.may_leave_unsettled(stage) ? part::confirm : part::mix;
    if (part_ == part::confirm) {
      if (problem && !gives_up_) gives_up_ = problem;
      failures_ = gives_up_ ? 1 : 0;
      products_ = std::span(&failures_, 1);
      products_turn_ = 0;
    } else if (problem) {
      fail_after_recombining(problem);
    }
  }
  /// Where the others may go on to recombine segments, and a rank whose rule has thrown does not know: a sum of how many
  /// ranks have failed.
  progress confirm(const bound_stage& stage) {
    if (add_unscheduled(stage) == progress::waits) return progress::waits;
    part_ = part::mix;
    if (failures_ == 0) return progress::done;
    if (gives_up_) std::rethrow_exception(gives_up_);
    throw communication_error("adasum: another rank failed while gradients were weighed");
  }
  /// The other ranks may go on to recombine segments: this one takes part in that first, and says there that it fails.
  void fail_after_recombining(const std::exception_ptr& problem) {
    if (!local_.has_unsettled()) std::rethrow_exception(problem);
    if (!gives_up_) gives_up_ = problem;
  }
  /// After how many elements the transport wants to be told: of the last stage's result, which is final.
  static std::size_t chunk_of(const bound_stage& stage, bool last) {
    return last ? stage.elements->elements_at_once(stage) : written_elements{}.chunk;
  }
  void mix(const bound_stage& stage, bool last) {
    if (gives_up_) return;
    try {
      const auto tell = deliver_early(stage);
      written_elements written{chunk_of(stage, last)};
      if (written.chunk != written_elements{}.chunk) written.tell = tell;
      local_.mix(stage, settings_.space.at(data_, stage.part().begin), written);
    } catch (...) {
      fail_after_recombining(std::current_exception());
    }
  }
  /// How many sums there are depends on the numbers. Every rank that adds them knows the same numbers.
  void begin_recombining(const bound_stage& stage) {
    local_.begin_recombining(stage, gives_up_);
    products_ = local_.recombine();
    products_turn_ = 0;
    part_ = part::recombine;
  }
  progress recombine(const bound_stage& stage, bool last) {
    if (gives_up_) local_.fail_recombining(gives_up_);
    while (!products_.empty()) {
      if (stage.sum_over.size() > 1 && add_unscheduled(stage) == progress::waits) return progress::waits;
      products_ = local_.recombine();
      products_turn_ = 0;
    }
    const auto tell = deliver_early(stage);
    function_ref<void(index_range)> written = unobserved_elements;
    if (chunk_of(stage, last) != written_elements{}.chunk) written = tell;
    std::byte* const out = gives_up_ ? nullptr : settings_.space.at(data_, stage.part().begin);
    local_.finish_recombining(out, note_in_report(stage), written);
    return progress::done;
  }
  progress add_unscheduled(const bound_stage& stage) {
    by_message().set_scheduled(false);
    settings_.comm.note_activity(reduction_activity::unscheduled);  // until the next step is taken
    const auto made = wait_for(*stage.products, stage.products->sum(stage, products_, products_turn_++));
    by_message().set_scheduled(true);
    return made;
  }

  engine_settings settings_;
  local_stages local_;
  report_writer report_;
  nonfinite_vote nonfinite_vote_;
  bound_stages stages_;
  // Of the run that is under way.
  std::size_t fallbacks_before_ = 0;  // of the rule
  std::byte *data_ = nullptr, *callers_ = nullptr;
  bool may_announce_ = false, last_failed_ = false;
  bool announced_ = false;      // what this rank is about to do, and it has not met all ranks yet
  bool votes_in_full_ = false;  // whether it waits for their votes
  bool posts_ = false;          // whether exchanges are posted
  std::size_t turn_ = 0;        // how often the step has waited
  transport* waits_for_ = nullptr;
  bool withdrawn_ = false;
  std::exception_ptr gives_up_;  // why this rank will withdraw, once the others need not wait for it in between
  std::optional<agreement> agreement_;
  bool waits_for_agreement_ = false, waits_for_votes_ = false;
  allgather flags_;
  part part_ = part::mix;
  double failures_ = 0;            // see confirm
  std::span<double> products_;     // what is being added besides the schedule's sums
  std::size_t products_turn_ = 0;  // how often that has waited
};

}  // namespace adasum::detail
