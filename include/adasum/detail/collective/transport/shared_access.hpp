// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../../core/config.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "../../../core/concepts.hpp"
#include "../../../core/error.hpp"
#include "../../../core/waiting_time.hpp"

/// How ranks that share memory work on each other's gradients in place: barriers, addresses and small sums.
///
/// Memory order. Every rank has a step number that only it writes, and only upwards. A barrier stores one's own number
/// (release) and waits until it has read (acquire) at least that number from everyone. So all that a rank wrote before
/// a barrier is visible to every rank after it. Between two barriers, an element is written by one rank at most, and
/// read by no other:
///
///     publish address ── A ── measure slice r of all, write partial sums
///                     ── B ── read all sums, mix slice r into all ── C
///
/// (A gradient that comes in pieces and is weighed as a whole is published, measured and summed once for each piece, with
/// barriers A and B; then its pieces are mixed.) Slice r of every gradient is touched by rank r alone between A and C.
/// (Where ranks get parts of the result only, it is written only where it belongs; C is still needed, since others may read
/// this rank's gradient until then.)
///
/// What ranks publish for each other, sums or short gradients, alternates between two slots, so that a rank that is ahead
/// does not overwrite what a rank behind still reads: the next barrier is between them. So a short gradient needs one
/// barrier only:
///
///     publish a copy ── A ── measure and mix all copies, into one's own memory
namespace adasum::detail {

/// For communicators without shared memory.
struct no_shared_memory {
  static constexpr bool same_address_space = false;
  std::span<const int> ranks() const { return {}; }
  std::byte* of(std::size_t) const { return nullptr; }
};

template <class Comm>
struct memory_shared_by {
  using type = no_shared_memory;
};
template <shared_memory_communicator Comm>
struct memory_shared_by<Comm> {
  using type = decltype(std::declval<const Comm&>().share(std::size_t{}));
};

template <class Memory>
class shared_access {
 public:
  /// Bytes of each rank: its control block, two slots for so many doubles, and a gradient.
  static std::size_t bytes_for(std::size_t sums, std::size_t gradient_bytes) {
    return sizeof(control) + sums_bytes(sums) + (Memory::same_address_space ? 0 : gradient_bytes);
  }

  /// @param sums      the most doubles that are published at once
  /// @param timeout  how long one rank waits for another within a reduction
  /// @param signature tells plans apart that cannot work together
  shared_access(Memory memory, int rank, std::size_t sums, std::uint64_t signature,
                std::chrono::duration<double> timeout)
      : memory_(std::move(memory)), signature_(signature), timeout_(timeout) {
    const auto ranks = memory_.ranks();
    self_ = static_cast<std::size_t>(std::ranges::find(ranks, rank) - ranks.begin());
    control_of(self_).sums.store(sums, std::memory_order_relaxed);  // others ask after a barrier
    control_of(self_).signature.store(signature, std::memory_order_relaxed);
    if constexpr (requires { memory_.bytes(); }) fits_ = memory_.bytes() >= bytes_for(sums, 0);
  }
  shared_access(const shared_access&) = delete;
  shared_access& operator=(const shared_access&) = delete;
  /// Whoever still waits for this rank is told that it has left.
  ~shared_access() {
    if constexpr (requires {
                    { memory_.alive() } -> std::same_as<bool>;
                  })
      if (!memory_.alive()) return;
    control_of(self_).left.store(1, std::memory_order_release);
  }

  std::span<const int> ranks() const { return memory_.ranks(); }
  std::size_t size() const { return ranks().size(); }
  std::size_t self() const { return self_; }
  /// This rank's gradient memory; null where every address can be reached and none is needed.
  std::byte* gradient() const { return Memory::same_address_space ? nullptr : gradient_of(self_); }

  /// Every rank counts its runs alike. A failure belongs to one run.
  void begin_run() {
    ++run_;
    step_ = run_ * steps_per_run;
    turn_ = run_ % 2;  // after a failure, some ranks have published more often than others
    exposed_ = false;
  }

  /// This rank has nothing more to do in this run, which went well, and nobody who fails need wait for it.
  void end_run() {
    control_of(self_).good_run.store(run_, std::memory_order_relaxed);
    leave_run();
  }

  /// Says where this rank's gradient lies. Others may ask after the next barrier.
  void publish(const void* gradient) {
    control_of(self_).address.store(reinterpret_cast<std::uintptr_t>(gradient), std::memory_order_relaxed);
  }
  /// The gradient of rank ranks()[i].
  std::byte* published(std::size_t i) const {
    if constexpr (Memory::same_address_space)
      return reinterpret_cast<std::byte*>(control_of(i).address.load(std::memory_order_relaxed));
    else
      return gradient_of(i);
  }

  /// The first half of a barrier: tells all ranks that this one is there.
  void arrive() { control_of(self_).step.store(++step_, std::memory_order_release); }

  /// The second half: whether all ranks are there. Does not block.
  /// @throws communication_error  a rank failed or left in this run
  bool all_arrived() const {
    bool all = true;
    for (std::size_t i = 0; i < size(); ++i) {
      if (!is_behind(i))
        require_good(i);
      else if (has_left(i) && is_behind(i))
        give_up(i, "has left");
      else
        all = false;
    }
    if (!all) progress();
    return all;
  }

  /// The same, waiting. @param bounded  whether options::timeout counts; not where others may still be at work elsewhere
  /// @throws communication_error  a rank failed or left in this run, or did not come in time
  void await_all(bool bounded) const {
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < size(); ++i) {
      for (unsigned turns = 0; is_behind(i); ++turns) {
        if (turns < 200) continue;
        std::this_thread::yield();
        progress();
        if (turns % 100 == 0)
          require_in_time(i, std::chrono::steady_clock::now() - start,
                          bounded ? longest_wait() : timeout_of_communicator());
        // It may have arrived and then left: its step decides.
        if (has_left(i) && is_behind(i)) give_up(i, "has left");
        for (std::size_t other = i + 1; other < size(); ++other)  // a failure is no reason to wait for a late rank
          if (!is_behind(other)) require_good(other);
      }
      require_good(i);
    }
  }

  /// Lets no rank wait for this one for the rest of the run. Some may still be at work on its gradient: those will find
  /// out at their next barrier, and fail too. One that has not come yet will not begin.
  void fail() {
    exposed_ = step_ > run_ * steps_per_run;
    control_of(self_).failed_run.store(run_, std::memory_order_release);
    leave_run();
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
    const auto start = std::chrono::steady_clock::now();
    while (!is_left_alone()) {
      std::this_thread::yield();
      if (Memory::same_address_space || std::chrono::steady_clock::now() - start < longest_wait()) continue;
      gave_up_waiting_ = true;
      return;
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
    if (!fits_) throw communication_error("adasum: another rank made a different plan, with less shared memory");
    turn_ = 1 - turn_;
    std::ranges::copy(bytes, reinterpret_cast<std::byte*>(sums_of(self_)));
  }
  /// What rank ranks()[i] has published a copy of last.
  const std::byte* published_copy(std::size_t i) const { return reinterpret_cast<const std::byte*>(sums_of(i)); }

  // A sum over the ranks, in their order, with the same bits on each: contribute, wait for the barrier, collect.

  /// Arrives at the barrier, too.
  void contribute(std::span<const double> values) {
    publish_copy(std::as_bytes(values));
    arrive();
  }
  void collect(std::span<double> values) const {
    std::ranges::fill(values, 0.0);
    for (std::size_t i = 0; i < size(); ++i) {
      const double* const partial = sums_of(i);
      for (std::size_t x = 0; x < values.size(); ++x) values[x] += partial[x];
    }
  }

 private:
  static constexpr std::size_t line = 64;
  static constexpr std::uint64_t steps_per_run = std::uint64_t{1} << 20;

  struct alignas(line) control {
    std::atomic<std::uint64_t> step;
    std::atomic<std::uint64_t> failed_run;  // the last
    std::atomic<std::uint64_t> good_run;    // the last
    std::atomic<std::uint64_t> signature;
    std::atomic<std::uint64_t> left;
    std::atomic<std::uintptr_t> address;
    std::atomic<std::uint64_t> sums;  // room for so many doubles at a time; not the same on all ranks
  };
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "shared memory needs atomics without locks");

  void leave_run() {
    step_ = (run_ + 1) * steps_per_run - 1;
    control_of(self_).step.store(step_, std::memory_order_release);
  }

  bool is_behind(std::size_t i) const { return control_of(i).step.load(std::memory_order_acquire) < step_; }

  /// Of the ranks between the first and the last barrier of a run: of this one if this rank took part in it, or of an
  /// earlier one. size() if there is none.
  std::size_t first_at_work() const {
    const auto end = exposed_ ? step_ : run_ * steps_per_run + 1;
    for (std::size_t i = 0; i < size(); ++i) {
      const auto step = control_of(i).step.load(std::memory_order_acquire);
      const bool between_runs = step % steps_per_run == 0 || (step + 1) % steps_per_run == 0;
      if (!between_runs && step < end && !has_left(i)) return i;
    }
    return size();
  }

  /// For a rank that has come to this barrier.
  /// @throws communication_error  it has failed in this run, or works by another plan
  void require_good(std::size_t i) const {
    const auto& peer = control_of(i);
    // One that has failed may have gone on, and failed again: then this run is not the last that failed, nor has it
    // ended well.
    const bool is_done = peer.step.load(std::memory_order_acquire) >= (run_ + 1) * steps_per_run - 1;
    if (peer.failed_run.load(std::memory_order_acquire) == run_ ||
        (is_done && peer.good_run.load(std::memory_order_acquire) < run_))
      give_up(i, "failed in this reduction, or heard that another one had");
    if (peer.signature.load(std::memory_order_relaxed) != signature_)
      give_up(i, "made a different plan (another length, element type, segments or schedule)");
  }

  /// Messages of the program's own may have to move before the others come.
  void progress() const {
    if constexpr (requires { memory_.progress(); }) memory_.progress();
  }

  bool has_left(std::size_t i) const {
    if (control_of(i).left.load(std::memory_order_acquire)) return true;
    if constexpr (requires {
                    { memory_.has_left(i) } -> std::same_as<bool>;
                  })
      return memory_.has_left(i);
    else
      return false;
  }
  [[noreturn]] void give_up(std::size_t i, const std::string& why) const { throw communication_error(text(i, why)); }
  std::string text(std::size_t i, const std::string& why) const {
    return "adasum: rank " + std::to_string(ranks()[i]) + " " + why;
  }

  void require_in_time(std::size_t i, std::chrono::duration<double> waited, std::chrono::duration<double> limit) const {
    if (waited > limit)
      throw timeout_error(text(i, "did not come within " + std::to_string(limit.count()) + " seconds"), ranks()[i]);
  }

  std::chrono::duration<double> timeout_of_communicator() const {
    if constexpr (requires { std::chrono::duration<double>(memory_.timeout()); })
      return memory_.timeout();
    else
      return no_timeout;
  }
  /// In the middle of a reduction.
  std::chrono::duration<double> longest_wait() const { return std::min(timeout_, timeout_of_communicator()); }
  static std::size_t sums_bytes(std::size_t sums) { return (2 * sums * sizeof(double) + line - 1) / line * line; }
  control& control_of(std::size_t i) const { return *std::launder(reinterpret_cast<control*>(memory_.of(i))); }
  double* sums_of(std::size_t i) const {
    return reinterpret_cast<double*>(memory_.of(i) + sizeof(control)) + turn_ * sums_at(i);
  }
  std::byte* gradient_of(std::size_t i) const { return memory_.of(i) + sizeof(control) + sums_bytes(sums_at(i)); }
  std::size_t sums_at(std::size_t i) const { return control_of(i).sums.load(std::memory_order_relaxed); }

  Memory memory_;
  std::uint64_t signature_;
  std::chrono::duration<double> timeout_;
  std::size_t self_ = 0;
  bool fits_ = true;
  std::uint64_t run_ = 0, step_ = 0;
  std::size_t turn_ = 0;
  bool exposed_ = false;          // whether others may have begun to work with this rank before it failed in this run
  bool gave_up_waiting_ = false;  // to be left alone
};

}  // namespace adasum::detail
