// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../../core/config.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "../../../core/message.hpp"
#include "../../../core/report.hpp"
#include "../../../schedules/sum_order.hpp"
#include "../../../schedules/transfers.hpp"
#include "../../references/communicator_ref.hpp"
#include "../../references/space_ref.hpp"
#include "../shared_votes.hpp"
#include "messages.hpp"
#include "shared_barriers.hpp"
#include "shared_memory_layout.hpp"
#include "transport.hpp"

namespace adasum::detail {

/// The transport in memory that ranks share: a stage whose members are all the ranks that share it, or by levels a group of
/// them, sends nothing. Each rank combines its part of all members' gradients where they lie and writes it into all of them;
/// or, where the stage says `published`, reads copies of all gradients and combines everything in its own memory. Records
/// travel by message, or from level to level in that memory, too. Members that stay behind get the result there, and
/// what is known for the report by message.
///
/// Between two barriers, an element is written by one rank at most, and read by no other:
///
///     publish address ── A ── measure slice r of all, write partial sums
///                     ── B ── read all sums, mix slice r into all ── C
///
/// Slice r of every gradient is touched by rank r alone between A and C.
/// (Where ranks get parts of the result only, it is written only where it belongs; C is still needed, since others may read
/// this rank's gradient until then.)
///
/// What ranks publish for each other lies in slots (shared_memory_layout.hpp), so that a short gradient needs one barrier
/// only:
///
///     publish a copy ── A ── measure and mix all copies, into one's own memory
///
/// By levels (stage::grouped), ranks meet in groups, A₁ and B₁, A₂ and B₂, …, and then …, C₂, C₁:
///
///     ── A₁ ── measure slice r of the group's gradients ── B₁ ── mix it into one's own ── A₂ ── … slice r of that slice …
///     … ── mix it into all of the last group ── C₂ ── copy the slice of level 1 into all of the first group ── C₁
///
/// At level l, member r reads slice r of what the members hold, and writes it: first in its own gradient, later in those of
/// the other members. Slices of one level are disjoint, and those of the next level lie in the member's own. So nobody but
/// r touches slice r of any member between A₁ and C₁, other than r's own groups of later levels, within their slices.
/// A member that has no slice stays behind: after A it waits at C. Between the last level and its C, those that go on may
/// exchange messages with ranks elsewhere.
class shared_memory final : public transport {
 public:
  /// Collective. @throws shared_memory_error  there is no room; on all ranks
  /// @param published  whether the one stage there is says so
  /// @param sizes      of sums; with record_bytes_of() of all stages
  /// @param signature  tells plans apart that cannot work together
  /// @param bytes      how much memory to ask for, if that is more than this rank needs: see bytes_for
  shared_memory(const space_ref& space, const communicator_ref& comm, std::size_t length, bool published,
                shared_sizes sizes, std::uint64_t signature, std::chrono::duration<double> timeout,
                std::size_t bytes = 0)
      : space_(space),
        length_(length),
        result_{0, length},
        published_(published),
        shared_(comm.share(std::max(bytes, bytes_for(space, comm, length, published, sizes))), comm.rank(),
                with_gradient(space, comm, sizes, length, published), signature, timeout, comm.state()) {
    std::vector<std::size_t> all(shared_.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    groups_.push_back({{all, shared_.self(), barrier_radix}, {all, shared_.self(), sum_radix(all.size())}});
  }
  /// What a rank with these stages needs. Where ranks' stages differ, all of them ask for the most that one needs: in some
  /// communicators, the first one that asks makes the memory of all.
  static std::size_t bytes_for(const space_ref& space, const communicator_ref& comm, std::size_t length, bool published,
                               const shared_sizes& sizes) {
    return shared_memory_layout<any_window>::bytes_for(with_gradient(space, comm, sizes, length, published),
                                                       static_cast<std::size_t>(comm.size()));
  }

  /// What is known before a stage of the gradients that this rank's vector combines, where that lies in shared memory.
  static std::size_t record_bytes_of(const stage& stage, std::size_t segments) {
    return stage.grouped ? known_leaves(stage, stage.self).size() * segments * sizeof(report::entry) : 0;
  }

  /// @param by_message  must outlive this object
  void send_records_by(messages& by_message) { by_message_ = &by_message; }
  /// What each rank gets of the result, if not all of it: of all ranks of the communicator. By levels, those that share
  /// memory are all of them, and each writes its part of the last level's result to whom it belongs. (A rank's element is
  /// not read any more then: whoever read it had a part in the result of that element, before it was there.)
  void set_wanted(const std::vector<index_range>& wanted, int rank, bool by_levels) {
    result_ = wanted[static_cast<std::size_t>(rank)];
    if (by_levels) wanted_ = wanted;
  }

  /// No other rank reads this part of this rank's gradient, for there is one stage, of all ranks, and this rank combines this
  /// part. So a run on a gradient that lies elsewhere leaves it there, and copies only the rest to memory that ranks share.
  void set_own_part(index_range part) { own_part_ = part; }

  /// Whether the stage's members read and write each other's gradients.
  bool carries(const stage& stage) const {
    if (stage.members.size() < 2 || (stage.replicated() && stage.survivors > 1 && !published_)) return false;
    return is_of_all(stage) || (stage.grouped && share_memory(stage.members) && share_memory(stage.sum_over));
  }
  /// Whether there is room for sums of inner products, where this memory carries the stage. In a stage of all ranks, these are
  /// added in the order of the members.
  static bool has_sums(const stage& stage) {
    return stage.grouped || has_waiting(stage) || stage.sum_over == stage.members;
  }
  /// Whether they are added there.
  bool adds(const stage& stage) const {
    return carries(stage) && has_sums(stage) && stage.sum_over.size() > 1 && share_memory(stage.sum_over);
  }
  /// A stage: who meets there, where it carries it. Called for each of this rank's, in their order. @return their number
  std::size_t add_group(const stage& stage, std::size_t segments) {
    if (!stage.grouped && (!carries(stage) || !has_waiting(stage))) return 0;
    // Levels that it does not carry count, too: all that meet at a level then number it alike.
    if (!carries(stage)) {
      groups_.push_back({});
      records_end_ += record_bytes_of(stage, segments);
      return groups_.size() - 1;
    }
    const auto places = [&](const std::vector<int>& members) {
      std::vector<std::size_t> found;
      for (const int member : members) found.push_back(shared_.place_of(member));
      return found;
    };
    const auto self_in = [&](const std::vector<std::size_t>& some) {
      return static_cast<std::size_t>(std::ranges::find(some, shared_.self()) - some.begin());
    };
    const auto members = places(stage.members), adding = places(stage.sum_over);
    groups_.push_back(
        {{members, self_in(members), barrier_radix},
         stage.survives() ? barrier_pattern(adding, self_in(adding), sum_radix(members.size())) : barrier_pattern(),
         records_end_});
    records_end_ += record_bytes_of(stage, segments);
    return groups_.size() - 1;
  }

  /// This rank's gradient memory; null where every address can be reached and none is needed.
  std::byte* gradient() const { return shared_.gradient(); }

  /// Until all ranks have come to the first stage, those that wait there look whether all are about to do the same.
  /// @param votes  null: no longer
  void watch(const shared_votes* votes) { watched_ = votes; }
  /// No rank has come through the first barrier, and none will: this rank has not begun the run.
  void take_back_run() { shared_.take_back_run(); }
  std::uint64_t next_run() const { return shared_.next_run(); }
  void set_next_run(std::uint64_t number) { shared_.set_next_run(number); }

  /// A run begins. @return where it works on the gradient: there, or on a copy of it
  std::byte* begin_run(std::byte* gradient_of_caller) {
    withdrawn_ = early_ = false;
    shared_.begin_run();
    callers_ = nullptr;
    mine_ = gradient();
    if (!gradient_of_caller || !mine_ || mine_ == gradient_of_caller || published_) return gradient_of_caller;
    shared_.require_left_alone();
    callers_ = gradient_of_caller;
    if (own_part_) return callers_;
    space_.copy(callers_, mine_, length_);
    return mine_;
  }
  /// It ended well. The result is where begin_run was given the gradient.
  void end_run() {
    if (callers_) copy_others_parts(mine_, callers_, result_);
    space_.fence();
    shared_.end_run();
  }

  progress bring(const bound_stage& stage, std::byte* gradient, std::size_t turn) override {
    if (withdrawn_) return stage.grouped ? progress::done : records(stage, stage.to_combine, turn);
    const auto& group = group_of(stage);
    if (turn == 0) {
      shared_.require_left_alone();
      if (published_)
        shared_.publish_copy({space_.at(gradient, stage.held.begin), stage.held.size() * space_.element_size()});
      else
        publish(gradient);
      if (space_.is_device()) space_.fence();  // the others' kernels do not wait for this rank's
      if (stage.grouped) {
        shared_.begin_level(level_of(stage));
        publish_records(stage, group);
      }
      return meet(group, time_limit::once_all_have_begun);
    }
    if (shared_.next_round()) return progress::waits;
    if (!stage.grouped) return records(stage, stage.to_combine, turn - group.members.rounds());
    take_records(stage, group);
    return progress::done;
  }

  const std::byte* vector(const bound_stage& stage, std::size_t i, const std::byte* gradient) const override {
    if (i == stage.self) return space_.at(gradient, stage.part().begin);
    if (published_) return shared_.published_copy(i);
    return space_.at(gradient_of(stage, i), stage.part().begin);
  }

  progress sum(const bound_stage& stage, std::span<double> values, std::size_t turn) override {
    if (withdrawn_) return progress::done;
    if (turn == 0) {
      shared_.contribute(values, group_of(stage).adding);
      return wait(pending::barrier, time_limit::always);
    }
    return shared_.add_round(values) ? progress::waits : progress::done;
  }

  progress deliver(const bound_stage& stage, std::byte* gradient, std::size_t turn) override {
    if (withdrawn_) return records(stage, stage.to_deliver, turn);
    const auto& group = group_of(stage);
    if (turn == 0) {
      if (stage.survives() && !std::exchange(early_, false)) copy_to_others(stage, gradient, stage.part());
      if (stage.group > 0) shared_.return_to_level(level_of(stage));
      // One that waits does so until the others come back from later stages.
      return meet(group, stage.survives() ? time_limit::always : time_limit::never);
    }
    if (shared_.next_round()) return progress::waits;
    return records(stage, stage.to_deliver, turn - group.members.rounds());
  }

  bool arrived(bool block) override {
    switch (pending_) {
      case pending::barrier: {
        const auto look = [&] {
          if (!watched_) return;
          watched_->require_same();
          if (shared_.has_lost_a_rank()) throw ranks_differ();  // it has dropped the plan, and votes for something else
        };
        return block ? (shared_.await_all(limit_, look), true) : shared_.all_arrived(look);
      }
      case pending::isolation: return block ? (shared_.await_left_alone(), true) : shared_.is_left_alone();
      case pending::records: break;
    }
    return by_message_->arrived(block);
  }

  /// While they are in the cache; a device has none to use, and copies once.
  std::size_t elements_at_once(const bound_stage& stage) const override {
    return stage.replicated() || space_.is_device() ? std::numeric_limits<std::size_t>::max() : std::size_t{1} << 14;
  }
  void deliver_early(const bound_stage& stage, std::byte* gradient, index_range written) override {
    early_ = true;
    copy_to_others(stage, gradient, written);
  }

  /// This rank has failed.
  void withdraw() {
    withdrawn_ = true;
    shared_.fail();
  }
  /// After that: waits until nobody is at work on this rank's gradient. The others find out soon that it has withdrawn.
  progress leave() { return wait(pending::isolation, time_limit::always); }

 private:
  enum class pending { barrier, isolation, records };

  /// Who meets at a stage.
  struct barriers {
    barrier_pattern members, adding;
    std::size_t records_at = 0;  // in the memory for records
  };

  static shared_sizes with_gradient(const space_ref& space, const communicator_ref& comm, shared_sizes sizes,
                                    std::size_t length, bool published) {
    const auto bytes = length * space.element_size();
    if (published) sizes.sums = std::max(sizes.sums, (bytes + sizeof(double) - 1) / sizeof(double));
    sizes.gradient_bytes = comm.same_address_space() ? 0 : bytes;
    return sizes;
  }

  bool is_of_all(const stage& stage) const { return std::ranges::equal(stage.members, shared_.ranks()); }
  bool share_memory(const std::vector<int>& some) const {
    return std::ranges::all_of(some, [&](int rank) { return shared_.place_of(rank) < shared_.size(); });
  }
  static bool has_waiting(const stage& stage) { return stage.survivors < stage.members.size(); }
  static std::size_t level_of(const bound_stage& stage) { return stage.grouped ? stage.group - 1 : 0; }
  const barriers& group_of(const bound_stage& stage) const { return groups_[stage.group]; }

  progress wait(pending what, time_limit limit) {
    pending_ = what;
    limit_ = limit;
    return progress::waits;
  }
  progress meet(const barriers& with, time_limit limit) {
    shared_.arrive(with.members);
    return wait(pending::barrier, limit);
  }
  /// @param gradient  what the run works on: the caller's gradient, or its copy in shared memory
  void publish(std::byte* gradient) {
    if (callers_ && own_part_) copy_others_parts(callers_, mine_, {0, length_});
    shared_.publish(callers_ ? mine_ : gradient);
  }
  /// Copies those of these elements that other ranks combine.
  void copy_others_parts(const std::byte* from, std::byte* to, index_range range) const {
    const auto copy = [&](std::size_t begin, std::size_t end) {
      if (begin < end) space_.copy(space_.at(from, begin), space_.at(to, begin), end - begin);
    };
    const auto own = own_part_.value_or(index_range{range.end, range.end});
    copy(range.begin, std::min(range.end, own.begin));
    copy(std::max(range.begin, own.end), range.end);
  }
  /// By message. After the barrier, if there was one.
  progress records(const bound_stage& stage, const transfers& list, std::size_t turn) {
    pending_ = pending::records;
    return by_message_->exchange_records(stage, list, turn);
  }
  /// What is known of the gradients in this rank's vector.
  void publish_records(const bound_stage& stage, const barriers& where) {
    if (stage.to_combine.sends.empty()) return;
    const auto known = std::as_bytes(by_message_->known_of(stage.to_combine.sends.front().leaves));
    copy_bytes(known, shared_.records_of(shared_.self()) + where.records_at);
  }
  void take_records(const bound_stage& stage, const barriers& where) {
    for (const auto& one : stage.to_combine.receives) {
      const auto known = std::as_writable_bytes(by_message_->known_of(one.leaves));
      const auto* const theirs = shared_.records_of(where.members.ranks()[one.member]) + where.records_at;
      copy_bytes({theirs, known.size()}, known.data());
    }
  }

  std::byte* gradient_of(const bound_stage& stage, std::size_t i) const {
    return shared_.published(group_of(stage).members.ranks()[i]);
  }
  void copy_to_others(const bound_stage& stage, const std::byte* gradient, index_range range) {
    const auto copy = [&](index_range some, std::byte* to) {
      if (!some.empty()) space_.copy(space_.at(gradient, some.begin), space_.at(to, some.begin), some.size());
    };
    if (wanted_.empty()) {
      for (std::size_t i = 0; i < stage.members.size(); ++i)
        if (i != stage.self) copy(stage.wanted_by(i, range), gradient_of(stage, i));
    } else if (stage.group + 1 == groups_.size()) {
      for (std::size_t i = 0; i < shared_.size(); ++i)
        if (i != shared_.self())
          copy(common(wanted_[static_cast<std::size_t>(shared_.ranks()[i])], range), shared_.published(i));
    }
    space_.fence();
  }
  static index_range common(index_range a, index_range b) {
    const auto begin = std::max(a.begin, b.begin);
    return {begin, std::max(begin, std::min(a.end, b.end))};
  }

  space_ref space_;
  std::size_t length_;
  index_range result_;                   // what this rank gets
  std::vector<index_range> wanted_;      // what each gets, by levels; empty: all of it
  std::optional<index_range> own_part_;  // what no other rank reads; not set: they may read all of it
  bool published_;
  shared_barriers<any_window> shared_;
  std::vector<barriers> groups_;  // the first: all ranks
  std::size_t records_end_ = 0;
  messages* by_message_ = nullptr;
  const shared_votes* watched_ = nullptr;

  // Of the run that is under way.
  std::byte* callers_ = nullptr;  // the caller's gradient, if others read and write a copy of it
  std::byte* mine_ = nullptr;     // what others read and write; null if they can reach any address
  bool withdrawn_ = false;
  bool early_ = false;                    // the result has already been written to every member's gradient
  time_limit limit_ = time_limit::never;  // to waiting at the barrier
  pending pending_ = pending::barrier;
};

}  // namespace adasum::detail
