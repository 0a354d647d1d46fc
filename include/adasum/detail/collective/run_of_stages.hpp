// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "../../core/concepts.hpp"
#include "../../core/optional_members.hpp"
#include "../../core/report.hpp"
#include "agreement.hpp"
#include "agreement_in_run.hpp"
#include "bound_stages.hpp"
#include "engine_settings.hpp"
#include "exclusion.hpp"
#include "local_stages.hpp"
#include "report_stages.hpp"
#include "steps.hpp"
#include "weighed_pieces.hpp"

namespace adasum::detail {

/// What is done in each step of a reduction (steps.hpp). Holds all buffers, so that running allocates nothing. Waits for
/// nobody unless told to: a step that waits is taken again when arrived() has said that what it waits for is there.
template <scalar T, execution_space<T> Space, communicator_for<Space> Comm, rule Rule, rule Inner>
class run_of_stages {
  using local_type = local_stages<T, Space, Rule, Inner>;

 public:
  run_of_stages(Space space, Comm comm, Rule& rule, segments_view segments, engine_settings<Inner> settings)
      : space_(std::move(space)),
        comm_(std::move(comm)),
        segments_(segments),
        settings_(std::move(settings)),
        rule_(rule),
        local_(space_, rule_, settings_, segments, most_members(settings_.stages)),
        report_(report_writer(settings_.gradients.count(comm_.size()), segments.size(), name_of(rule),
                              settings_.schedule_name)),
        exclusion_(comm_.size(), settings_.gradients, segments.size(), settings_.nonfinite, settings_.leaf_ranks),
        stages_(space_, comm_, segments, std::move(settings_.stages), settings_.transport, std::move(settings_.parts),
                report_, [&](std::size_t members) { return local_type::most_products(segments.size(), members); }),
        pieces_(space_, stages_.all(), segments.size()) {
    if (!settings_.leaf_ranks.empty()) report_.reserve_order();
    if (rounds()) report_.written().set_wire(settings_.transport.wire);
  }
  run_of_stages(const run_of_stages&) = delete;
  run_of_stages& operator=(const run_of_stages&) = delete;

  T* shared_gradient() const { return stages_.shared_gradient(); }
  bool is_in_place() const { return stages_.is_in_place(); }
  const report& last_report() const { return report_.last(); }

  std::vector<step> steps() const {
    const auto is_measured = [&](const planned_stage& stage) { return local_.is_measured(stage); };
    return step_list(stages_.all(), is_measured)
        .make(exclusion_.is_decided(), excludes_beforehand(), rounds(), stages_.exchanges_parts());
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
    turn_ = turn;
    note_activity(comm_, withdrawn_ ? reduction_activity::withdrawn : reduction_activity::scheduled);
    const auto& stage = stages_.all()[next.stage];
    switch (next.kind) {
      case step_kind::agree: return wait_for(by_message(), agreement_.take(by_message()));
      case step_kind::begin: return begin();
      case step_kind::exclude: return exclude();
      case step_kind::bring: return wait_for(*stage.elements, stage.elements->bring(stage, data_, turn_));
      case step_kind::measure: return measure(stage);
      case step_kind::sum: return wait_for(*stage.products, stage.products->sum(stage, local_.gram_of(stage), turn_));
      case step_kind::weigh: return weigh_pieces();
      case step_kind::combine: return combine(stage, next.stage + 1 == stages_.all().size());
      case step_kind::round_result: return round_result(stage);
      case step_kind::deliver: return wait_for(*stage.elements, stage.elements->deliver(stage, data_, turn_));
      case step_kind::hand_over: return wait_for(by_message(), by_message().deliver(stages_.to_owners(), data_, turn_));
      case step_kind::finish: return finish();
      case step_kind::gather:
      case step_kind::gather_norms: break;  // of run_of_sums
    }
    return progress::done;
  }
  /// Whether what the last step waits for is there. @param block  wait until it is
  bool arrived(bool block) { return agreement_.arrived(*waits_for_, block); }

  // ── a rank that has failed ──

  /// From here on, steps only let nobody wait: this rank's exchanges are made, with empty messages, and what it gets is
  /// thrown away. The last of them waits until nobody is at work on this rank's gradient.
  void withdraw() {
    withdrawn_ = true;
    local_.forget_recombining();
    pieces_.forget();
    stages_.withdraw();
    data_ = nullptr;
  }
  bool withdrawn() const { return withdrawn_; }
  /// The gradient may be gone: from here on, it is not touched, and sums of a recombination say that this rank fails.
  void give_up(const std::exception_ptr& problem) { gives_up_ = problem; }
  /// What has failed on this rank, and was put off; null if nothing was.
  std::exception_ptr reason_to_give_up() const { return gives_up_ ? gives_up_ : local_.problem_in_recombining(); }

 private:
  /// Whether elements are rounded on their way.
  bool rounds() const { return settings_.transport.wire != wire_format::same && !stages_.is_in_place(); }
  static std::size_t most_members(const std::vector<planned_stage>& stages) {
    std::size_t most = 1;
    for (const auto& stage : stages) most = std::max(most, stage.members.size());
    return most;
  }

  auto& by_message() { return stages_.by_message(); }

  progress wait_for(transport<T>& by, progress made) {
    waits_for_ = &by;
    return made;
  }

  // ── beginning and end ──

  progress begin() {
    report_.begin(fallbacks_of(rule_));
    data_ = stages_.begin_run(gives_up_ ? nullptr : data_, posts_);
    return progress::done;
  }

  progress exclude() {
    if (turn_ == 0) {
      if (!withdrawn_) local_.find_nonfinite_segments(data_, exclusion_.mine());
      flags_ = exclusion_.exchanges(comm_.rank(), comm_.size());
    }
    if (wait_for(by_message(), by_message().next_of(flags_)) == progress::waits) return progress::waits;
    if (withdrawn_) return progress::done;
    exclusion_.decide(report_.written());
    if (excludes_beforehand() && !gives_up_ && !exclusion_.of_rank(comm_.rank())) local_.clear(data_);
    return progress::done;
  }

  progress round_result(const bound_stage<T>& stage) {
    if (!withdrawn_) by_message().round(stage, data_);
    return progress::done;
  }

  progress leave() {
    if (turn_ > 0) return progress::done;
    auto& last = stages_.last_to_leave();
    return wait_for(last, last.leave());
  }

  progress finish() {
    if (withdrawn_) return leave();
    space_.fence();
    stages_.end_run();
    auto& found = report_.written();
    constexpr bool has_inner_rule = !std::is_same_v<Inner, no_inner_rule>;
    const bool measured = settings_.measure || (needs_gram<Rule> && (!has_inner_rule || needs_gram<Inner>));
    found.set_measured(measured);
    if (has_inner_rule && !measured) found.forget_norms();  // which stages under one of the rules may have measured
    if (rounds()) found.set_lost_on_wire(by_message().losses());
    report_.finish(settings_.leaf_ranks, exclusion_.all(), by_message().bytes_sent(), fallbacks_of(rule_));
    return progress::done;
  }

  // ── a stage: bring → measure → sum → combine (weigh → mix → recombine), and back: deliver ──
  // What knows no other rank is skipped once this one has withdrawn.

  progress measure(const bound_stage<T>& stage) {
    if (withdrawn_) return progress::done;
    set_vectors(stage);
    local_.measure(stage);
    return progress::done;
  }
  void set_vectors(const bound_stage<T>& stage) {
    for (std::size_t i = 0; i < stage.members.size(); ++i)
      local_.set_vector(i, stage.elements->vector(stage, i, data_), exclusion_.gradients(stage, i));
  }

  progress combine(const bound_stage<T>& stage, bool last) {
    if (withdrawn_) return progress::done;
    if (stage.weighed_together) return mix_piece(stage);
    if (turn_ == 0) weigh(stage);
    if (part_ == part::confirm && confirm(stage) == progress::waits) return progress::waits;
    if (part_ == part::mix) {
      mix(stage, last);
      if (!local_.has_unsettled()) return progress::done;
      begin_recombining(stage);
    }
    return recombine(stage, data_ + stage.part().begin, last);
  }

  void weigh(const bound_stage<T>& stage) {
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
  progress confirm(const bound_stage<T>& stage) {
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

  auto note_in_report(const bound_stage<T>& stage) {
    return [&](std::size_t k, const segment_outcome& outcome) {
      report_.note(stage, stage.segments.begin + k, outcome, local_.is_measured(stage));
    };
  }

  void mix(const bound_stage<T>& stage, bool last) {
    if (gives_up_) return;
    try {
      local_.mix(stage, data_ + stage.part().begin, early_delivery<T>(stage, data_, last));
    } catch (...) {
      fail_after_recombining(std::current_exception());
    }
  }

  /// How many sums there are depends on the numbers. Every rank that adds them knows the same numbers.
  void begin_recombining(const bound_stage<T>& stage) {
    local_.begin_recombining(stage, stages_.all(), gives_up_);
    products_ = local_.recombine(stage);
    products_turn_ = 0;
    part_ = part::recombine;
  }
  progress recombine(const bound_stage<T>& stage, T* out, bool last) {
    if (gives_up_) local_.fail_recombining(stage, gives_up_);
    while (!products_.empty()) {
      if (stage.sum_over.size() > 1 && add_unscheduled(stage) == progress::waits) return progress::waits;
      products_ = local_.recombine(stage);
      products_turn_ = 0;
    }
    local_.finish_recombining(stage, out, note_in_report(stage), early_delivery<T>(stage, data_, last));
    return progress::done;
  }
  progress add_unscheduled(const bound_stage<T>& stage) {
    by_message().set_scheduled(false);
    note_activity(comm_, reduction_activity::unscheduled);  // until the next step is taken
    const auto made = wait_for(*stage.products, stage.products->sum(stage, products_, products_turn_++));
    by_message().set_scheduled(true);
    return made;
  }

  // ── pieces that are weighed together: weigh → recombine, then mix and deliver one after the other ──

  /// Whether ranks must be left out before anything is combined, or written where others read it; in shared memory, also
  /// before the first barrier, since one that fails later does not come to an exchange of messages before the others have
  /// left. Otherwise that is decided when all pieces are there.
  bool excludes_beforehand() const {
    const auto& last = stages_.all().back();
    return !last.weighed_together || last.replicated() || !std::is_same_v<Inner, no_inner_rule> || is_in_place();
  }

  progress weigh_pieces() {
    if (withdrawn_) return progress::done;
    const auto& all = pieces_.as_one();
    if (turn_ == 0) {
      set_copies(all);
      if (exclusion_.is_decided()) local_.leave_out_absent(all);
      weigh(all);
    }
    if (part_ == part::confirm && confirm(all) == progress::waits) return progress::waits;
    if (part_ == part::mix) {
      if (!local_.has_unsettled()) return progress::done;
      gather(all);
      begin_recombining(all);
    }
    if (recombine(all, pieces_.copy_of(0), false) == progress::waits) return progress::waits;
    pieces_.scatter(data_);
    return progress::done;
  }
  void set_copies(const bound_stage<T>& all) {
    for (std::size_t i = 0; i < all.members.size(); ++i)
      local_.set_vector(i, pieces_.copy_of(i), exclusion_.gradients(all, i));
  }
  void gather(const bound_stage<T>& all) {
    if (gives_up_) return;
    try {
      pieces_.gather(data_, [&](std::size_t i) { return exclusion_.gradients(all, i) > 0; });
      set_copies(all);
    } catch (...) {  // the others go on to recombine
      gives_up_ = std::current_exception();
    }
  }

  progress mix_piece(const bound_stage<T>& stage) {
    if (gives_up_) return progress::done;
    set_vectors(stage);
    local_.mix(stage, data_ + stage.part().begin, early_delivery<T>(stage, data_, true));
    return progress::done;
  }

  Space space_;
  Comm comm_;
  segments_view segments_;
  engine_settings<Inner> settings_;
  Rule& rule_;
  local_type local_;
  report_stages report_;
  exclusion exclusion_;
  bound_stages<T, Space, Comm> stages_;
  weighed_pieces<T, Space> pieces_;

  // Of the run that is under way.
  T* data_ = nullptr;
  bool posts_ = false;    // whether exchanges are posted
  std::size_t turn_ = 0;  // how often the step has waited
  transport<T>* waits_for_ = nullptr;
  bool withdrawn_ = false;
  std::exception_ptr gives_up_;  // why this rank will withdraw, once the others need not wait for it in between
  agreement_in_run agreement_;
  allgather flags_;
  enum class part { confirm, mix, recombine } part_ = part::mix;  // of the step combine
  double failures_ = 0;                                           // see confirm
  std::span<double> products_;                                    // what is being added besides the schedule's sums
  std::size_t products_turn_ = 0;                                 // how often that has waited
};

}  // namespace adasum::detail
