// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../../core/config.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "../../../core/communicator_state.hpp"
#include "../../../core/error.hpp"
#include "../../../core/message.hpp"
#include "../../../core/waiting.hpp"
#include "../../references/erased.hpp"
#include "../../references/shared_window_ref.hpp"
#include "shared_memory_layout.hpp"

/// How ranks that share memory work on each other's gradients in place: barriers, addresses and small sums.
///
/// Memory order. Every rank has a step number that only it writes, and only upwards (but see take_back_run). At a barrier of some
/// of the ranks (shared_memory_layout.hpp) it stores its own number (release), and waits until it has read (acquire) at least
/// that number from those that it hears from. In each further round it does so with a number of that round, on a cache line of
/// its own, which a few ranks read. So all that a rank wrote before a barrier is visible to every rank after it, directly or
/// through others.
///
/// Failure. A rank that fails stores the last step of the run, and then reads the others' steps: those that have not begun
/// the run will not work on its gradient. A rank that begins stores its first step, and then reads whether the others have
/// failed. One of the two must see the other: these stores and loads are sequentially consistent. Who hears of a rank through
/// others sees that these have failed: so a rank that fails reads the others' steps until they are twice the same.
///
/// Steps. Groups that have not met yet may have met differently often, so each level's steps begin at a number of its own,
/// and on the way back at another, where those that stayed behind meet the others.
namespace adasum::detail {

template <class Memory>
class shared_barriers {
  using clock = std::chrono::steady_clock;

 public:
  /// @param timeout  how long one rank waits for another within a reduction
  /// @param signature tells plans apart that cannot work together
  /// @param state    the communicator's, or null; must outlive this object
  shared_barriers(Memory memory, int rank, const shared_sizes& sizes, std::uint64_t signature,
                  std::chrono::duration<double> timeout, const communicator_state* state = nullptr)
      : blocks_(std::move(memory), rank, sizes), signature_(signature), timeout_(timeout), state_(state) {
    control_of(self()).signature.store(signature, std::memory_order_relaxed);  // others ask after a barrier
  }
  shared_barriers(const shared_barriers&) = delete;
  shared_barriers& operator=(const shared_barriers&) = delete;
  /// Whoever still waits for this rank is told that it has left.
  ~shared_barriers() { control_of(self()).left.store(1, std::memory_order_release); }

  std::span<const int> ranks() const { return memory().ranks(); }
  std::size_t size() const { return ranks().size(); }
  std::size_t self() const { return blocks_.self(); }
  /// This rank's gradient memory; null where every address can be reached and none is needed.
  std::byte* gradient() const { return shares_addresses(memory()) ? nullptr : blocks_.gradient_of(self()); }

  /// A rank's place in ranks(); size() if it is not there.
  std::size_t place_of(int rank) const {
    return static_cast<std::size_t>(std::ranges::find(ranks(), rank) - ranks().begin());
  }

  /// Every rank counts its runs alike. A failure belongs to one run.
  void begin_run() {
    ++run_;
    step_ = run_ * steps_per_run;
    has_begun_ = false;
    begin_slots(0);  // after a failure, some ranks have published more often than others
    exposed_ = false;
  }
  /// The steps of a level begin: those of level 0 with the run.
  void begin_level(std::size_t number) {
    step_ = std::max(step_, begin_of_run() + number * steps_per_level);
    begin_slots(number);
  }
  void return_to_level(std::size_t number) {
    step_ = std::max(step_, begin_of_run() + (levels_per_run - 1 - number) * steps_per_level);
  }

  /// The number of the next run. Where a rank has left out a run, or has had more, all of them must set it to the highest.
  std::uint64_t next_run() const { return run_ + 1; }
  void set_next_run(std::uint64_t number) { run_ = number - 1; }
  /// No rank has come through the first barrier of the run, and none will: for this rank, the run has not begun. So the next run
  /// is this one again; before that, all ranks must have met elsewhere.
  void take_back_run() {
    --run_;
    step_ = end_of_run();
    control_of(self()).step.store(step_, std::memory_order_relaxed);
    for (; round_ > 0; --round_) blocks_.flag_of(self(), round_).store(step_, std::memory_order_relaxed);
  }

  /// This rank has nothing more to do in this run, which went well, and nobody who fails need wait for it.
  void end_run() {
    control_of(self()).good_run.store(run_, std::memory_order_relaxed);
    step_ = end_of_run();
    control_of(self()).step.store(step_, std::memory_order_release);
  }

  /// Says where this rank's gradient lies. Others may ask after the next barrier.
  void publish(void* gradient) { say(reinterpret_cast<std::uintptr_t>(gradient)); }
  /// The gradient of rank ranks()[i].
  std::byte* published(std::size_t i) const {
    if (!shares_addresses(memory())) return blocks_.gradient_of(i);
    return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(said(i)));  // NOLINT(*-no-int-to-ptr)
  }
  /// In place of an address, anything else of 64 bits. It comes with the barrier, and takes no cache line of its own.
  void say(std::uint64_t word) { control_of(self()).word.store(word, std::memory_order_release); }
  std::uint64_t said(std::size_t i) const { return control_of(i).word.load(std::memory_order_acquire); }
  /// Whether a rank has come to the first barrier of this run, has not ended it, and said something else. (Who says something
  /// after a run does so after ending it.)
  bool has_said_other_than(std::uint64_t word, std::size_t i) const {
    const auto step = step_of(i);
    return step > begin_of_run() && step < end_of_run() && said(i) != word && step_of(i) < end_of_run();
  }
  /// Whether every rank has said this in this run, and none has failed in it; who has ended it well has.
  bool all_have_said(std::uint64_t word) const {
    for (std::size_t i = 0; i < size(); ++i)
      if ((said(i) != word && step_of(i) < end_of_run()) || has_failed(i)) return false;
    return true;
  }

  /// Begins the first round: tells that this rank is there. @param with  must outlive the barrier
  void arrive(const barrier_pattern& with) {
    with_ = &with;
    round_ = 0;
    ++step_;
    if (!std::exchange(has_begun_, true))  // see fail()
      control_of(self()).step.store(step_, std::memory_order_seq_cst);
    else
      control_of(self()).step.store(step_, std::memory_order_release);
  }
  /// After a round: begins the next one, if there is one. If not, all have come.
  bool next_round() {
    if (round_ + 1 >= with_->rounds()) return false;
    ++round_;
    blocks_.flag_of(self(), round_).store(step_, std::memory_order_release);
    return true;
  }

  /// Whether those that this rank hears from in this round have come. Does not block.
  /// @param look  is called while they have not; it may throw
  /// @throws communication_error  a rank failed or left in this run
  bool all_arrived(function_ref<void()> look = [] {}) {
    bool all = true;
    for (const auto i : with_->heard_in(round_)) {
      if (!is_behind(i)) {
        require_good(i);
        continue;
      }
      if (std::exchange(all, false)) look();
      require_present(i, look);
    }
    if (all) return true;
    if (++polls_ % 64 == 0) require_none_failed();
    progress();
    return false;
  }

  /// The same, waiting. @throws communication_error  a rank failed or left in this run, or did not come in time
  void await_all(time_limit limit, function_ref<void()> look = [] {}) const {
    std::optional<clock::time_point> start;
    for (const auto i : with_->heard_in(round_)) {
      for (unsigned turns = 0; is_behind(i);) {
        if (spin_.again()) continue;
        if (!start) start = clock::now();
        own_memory<Memory>::rest(memory());
        progress();
        look();
        require_present(i, look);
        if (turns++ % 100 != 0) continue;
        require_none_failed();
        if (limit == time_limit::once_all_have_begun && all_have_begun()) {
          limit = time_limit::always;
          start = clock::now();
        }
        require_in_time(i, *start, limit == time_limit::always ? longest_wait() : timeout_of_communicator());
      }
      spin_.ended();
      require_good(i);
    }
  }

  /// Lets no rank wait for this one for the rest of the run. Some may still be at work on its gradient: those will find
  /// out at their next barrier, and fail too. One that has not come yet will not begin.
  void fail() {
    exposed_ = has_begun_;
    control_of(self()).failed_run.store(run_, std::memory_order_release);
    step_ = end_of_run();
    control_of(self()).step.store(step_, std::memory_order_seq_cst);
  }
  /// After fail(): whether no rank is at work on this one's gradient any more, or reads what it published before. Asked again
  /// and again.
  bool is_left_alone() const {
    const bool is_alone = first_at_work() == size();
    if (!is_alone) progress();
    return is_alone;
  }
  /// Waits until then. Where the others work on the caller's gradient itself, for as long as it takes: it may be freed
  /// afterwards. Where they are other processes, not longer than the timeout: one may have died, and their memory stays
  /// until all have dropped it. But then this rank publishes nothing there before it is left alone.
  void await_left_alone() {
    const auto start = clock::now();
    while (!is_left_alone()) {
      own_memory<Memory>::rest(memory());
      gave_up_waiting_ =
          !shares_addresses(memory()) && (stop_.is_requested() || clock::now() - start >= longest_wait());
      if (gave_up_waiting_) return;
    }
  }
  /// Before this rank publishes anything. @throws communication_error  a rank is at work on what it published in a run
  ///                                                                   that it has given up
  void require_left_alone() {
    if (!std::exchange(gave_up_waiting_, false)) return;
    const auto at_work = first_at_work();
    if (at_work < size()) give_up(at_work, "is still at work in a reduction that failed");
  }

  /// Copies bytes to where the others may read them, between the next barrier and the one after it.
  /// @throws communication_error  a rank with another plan has made the memory, and there is no room
  void publish_copy(std::span<const std::byte> bytes) {
    if (!blocks_.fit())
      throw communication_error("adasum: another rank made a different plan, with less shared memory");
    slot_ = published_++ % 2 == 0 ? first_slot_ : 2;
    copy_bytes(bytes, slot_of(self(), 0));
  }
  /// What rank ranks()[i] has published a copy of last.
  const std::byte* published_copy(std::size_t i) const { return slot_of(i, 0); }

  /// Memory for what is known of gradients: rank ranks()[i]'s, which it writes once in a run before others may read it.
  std::byte* records_of(std::size_t i) const { return blocks_.records_of(i); }

  // A sum over ranks that meet, with the same bits as by messages (sum_order.hpp): contribute; in each round wait, and add.
  /// Arrives, too.
  void contribute(std::span<const double> values, const barrier_pattern& with) {
    publish_copy(std::as_bytes(values));
    arrive(with);
  }
  /// After a round: adds what was heard, in the order of the parts, and begins the next round, if there is one. If not,
  /// `values` are the sums.
  bool add_round(std::span<double> values) {
    const auto heard = with_->heard_in(round_);
    const auto before = with_->before_own(round_);
    std::array<const double*, barrier_pattern::widest> from{};
    for (std::size_t i = 0; i < heard.size(); ++i) from[i] = reinterpret_cast<const double*>(slot_of(heard[i], round_));
    for (std::size_t x = 0; x < values.size(); ++x) {
      double sum = 0;
      for (std::size_t i = 0; i < before; ++i) sum += from[i][x];
      sum += values[x];
      for (std::size_t i = before; i < heard.size(); ++i) sum += from[i][x];
      values[x] = sum;
    }
    return next_round(std::as_bytes(values));
  }

  /// Whom this rank hears from in this round: places in ranks().
  std::span<const std::size_t> heard() const { return with_->heard_in(round_); }
  /// What rank ranks()[i], one of them, has published for it.
  const std::byte* heard_copy(std::size_t i) const { return slot_of(i, round_); }
  /// Begins the next round, if there is one.
  bool next_round(std::span<const std::byte> bytes) {
    if (round_ + 1 >= with_->rounds()) return false;
    copy_bytes(bytes, slot_of(self(), round_ + 1));
    return next_round();
  }

  /// A failure is no reason to wait for a late rank. @throws communication_error  one has failed in this run
  void require_none_failed() const {
    for (std::size_t i = 0; i < size(); ++i)
      if (has_failed(i)) require_good(i);
  }
  /// Whether a rank has destroyed its part of the memory, and so will not come to this run.
  bool has_lost_a_rank() const {
    for (std::size_t i = 0; i < size(); ++i)
      if (has_left(i) && step_of(i) <= begin_of_run()) return true;
    return false;
  }

 private:
  static constexpr std::uint64_t steps_per_run = std::uint64_t{1} << 20, steps_per_level = std::uint64_t{1} << 14,
                                 levels_per_run = steps_per_run / steps_per_level;

  const Memory& memory() const { return blocks_.memory(); }
  std::uint64_t begin_of_run() const { return run_ * steps_per_run; }
  std::uint64_t end_of_run() const { return begin_of_run() + steps_per_run - 1; }
  std::uint64_t step_of(std::size_t i) const { return control_of(i).step.load(std::memory_order_seq_cst); }
  /// In this round. One that has left the run keeps nobody waiting.
  bool is_behind(std::size_t i) const {
    if (round_ == 0) return step_of(i) < step_;
    return blocks_.flag_of(i, round_).load(std::memory_order_acquire) < step_ && step_of(i) < end_of_run();
  }
  bool all_have_begun() const {
    for (std::size_t i = 0; i < size(); ++i)
      if (step_of(i) <= begin_of_run()) return false;
    return true;
  }

  /// Of the ranks between the first and the last barrier of a run: of this one if this rank took part in it, or of an
  /// earlier one. size() if there is none.
  std::size_t first_at_work() const {
    const auto end = exposed_ ? step_ : begin_of_run() + 1;
    std::uint64_t sum = 0, sum_before = 0;  // of steps, which only grow: if the sum is the same, so is each of them
    do {
      sum_before = std::exchange(sum, 0);
      for (std::size_t i = 0; i < size(); ++i) {
        const auto step = step_of(i);
        const bool between_runs = step % steps_per_run == 0 || (step + 1) % steps_per_run == 0;
        if (!between_runs && step < end && !has_left(i)) return i;
        sum += step;
      }
    } while (sum != sum_before);
    return size();
  }

  /// For a rank that has come to this round.
  /// @throws communication_error  it has failed in this run, or works by another plan
  void require_good(std::size_t i) const {
    if (has_failed(i))
      give_up(i, step_of(i) > end_of_run() ? "failed in this reduction, and has begun the next"
                                           : "failed in this reduction, or heard that another one had");
    if (control_of(i).signature.load(std::memory_order_relaxed) != signature_)
      give_up(i, "made a different plan (another length, element type, segments or schedule)");
  }
  bool has_failed(std::size_t i) const {
    const auto& peer = control_of(i);
    // If it has gone on and failed again, this run is not the last that failed, nor has it ended well.
    const bool is_done = step_of(i) >= end_of_run();
    return peer.failed_run.load(std::memory_order_acquire) == run_ ||
           (is_done && peer.good_run.load(std::memory_order_acquire) < run_);
  }
  /// Messages of the program's own may have to move before the others come.
  void progress() const {
    if constexpr (requires { memory().progress(); }) memory().progress();
  }

  bool has_left(std::size_t i) const {
    bool has = control_of(i).left.load(std::memory_order_acquire);
    if constexpr (tells_who_has_left<Memory>) has = has || memory().has_left(i);
    return has;
  }
  void require_present(std::size_t i, function_ref<void()> look) const {
    if (!has_left(i) || !is_behind(i)) return;  // it may have arrived and then left
    look();                                     // it may know why
    give_up(i, "has left");
  }
  [[noreturn]] void give_up(std::size_t i, const char* why) const {
    throw communication_error({"adasum: rank ", ranks()[i], " ", why});
  }

  /// @param i  this rank waits for it; it may itself wait for the one that is late
  void require_in_time(std::size_t i, clock::time_point start, std::chrono::duration<double> limit) const {
    const bool is_interrupted = stop_.is_requested();
    if (!is_interrupted && clock::now() - start <= limit) return;
    for (std::size_t other = 0; other < size(); ++other)
      if (step_of(other) < std::min(step_of(i), step_)) i = other;
    const auto why =
        is_interrupted ? "had not come when the wait was interrupted" : "did not come within " + text_of(limit);
    throw timeout_error({"adasum: rank ", ranks()[i], " ", why}, ranks()[i]);
  }

  std::chrono::duration<double> timeout_of_communicator() const { return state_ ? (state_->timeout)() : no_timeout; }
  /// In the middle of a reduction.
  std::chrono::duration<double> longest_wait() const { return std::min(timeout_, timeout_of_communicator()); }

  auto& control_of(std::size_t i) const { return blocks_.control_of(i); }
  void begin_slots(std::size_t level) {
    first_slot_ = slot_ = (run_ + level) % 2;
    published_ = 0;
  }
  std::byte* slot_of(std::size_t i, std::size_t round) const {
    return blocks_.slot_of(i, shared_memory_layout<Memory>::slots_per_round * round + slot_);
  }

  shared_memory_layout<Memory> blocks_;
  std::uint64_t signature_;
  std::chrono::duration<double> timeout_;
  const communicator_state* state_;
  std::uint64_t run_ = 0, step_ = 0;
  std::size_t first_slot_ = 0, slot_ = 0;  // of this level; of what was published last
  std::size_t published_ = 0;              // how often, at this level
  const barrier_pattern* with_ = nullptr;  // and its round
  std::size_t round_ = 0;
  unsigned polls_ = 0;
  mutable spinning spin_{looks_at(memory())};
  mutable interruption stop_;
  bool has_begun_ = false;
  bool exposed_ = false;          // whether others may have begun to work with this rank before it failed in this run
  bool gave_up_waiting_ = false;  // to be left alone
};

}  // namespace adasum::detail
