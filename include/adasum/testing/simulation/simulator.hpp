// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../../core/communicator_state.hpp"
#include "../../core/error.hpp"
#include "../../core/message.hpp"
#include "../../detail/references/shared_window_ref.hpp"
#include "mailbox.hpp"
#include "rank_state.hpp"
#include "scheduler.hpp"
#include "settings.hpp"
#include "system_memory.hpp"

namespace adasum::detail::simulated {

/// Ranks of one simulation: whose turn it is, the messages and the memory between them. Members are called by the rank
/// that has the turn, so nothing here is locked.
class simulator {
 public:
  simulator(int ranks, const simulation_settings& settings)
      : settings_(settings),
        random_(rng::mixed(settings.seed + 0x5EED)),
        order_(static_cast<std::size_t>(ranks), random_),
        ranks_(static_cast<std::size_t>(ranks)),
        states_(static_cast<std::size_t>(ranks)),
        mail_(static_cast<std::size_t>(ranks)),
        scheduler_(static_cast<std::size_t>(ranks) + 1) {
    settings_.nodes.resize(ranks_.size());
    const auto longest = std::min(settings.longest_delay, longest_delay);
    delay_ = random_.one_in(3) ? 0 : 1 + random_.below(random_.one_in(3) ? longest : std::min<std::size_t>(longest, 8));
    copied_in_4_ = random_.below(5);
    scribbles_ = random_.one_in(2);
  }
  simulator& operator=(simulator&&) = delete;

  int size() const { return static_cast<int>(ranks_.size()); }
  const simulation_settings& settings() const { return settings_; }
  communicator_state& state_of(int rank) { return states_[index(rank)]; }
  bool has_left(int rank) const { return of(rank).has_left; }
  void arm(int rank, bool armed) { of(rank).is_armed = armed; }
  bool fault_came() const { return fault_came_; }
  std::size_t failed_exchanges(int rank) const { return of(rank).failed_exchanges; }
  void note_activity(int rank, reduction_activity activity) { of(rank).activity = activity; }

  // ── the life of a rank; the thread that began everything has the last seat ──

  /// @return false if there is nothing to do after all
  bool await_first_turn(int rank) {
    scheduler_.await(index(rank));
    return !is_cancelled_;
  }
  void run() {
    scheduler_.give(index(choose(-1)));
    scheduler_.await(ranks_.size());
  }
  /// Before run(): lets so many threads end that have begun.
  void cancel(std::size_t threads) {
    is_cancelled_ = true;
    for (std::size_t r = 0; r < threads; ++r) scheduler_.give(r);
  }
  void end(int rank) {
    state_of(rank).plans().clear();
    leave(rank);
    of(rank).doing = state::gone;
    hand_on(rank);
  }

  // ── where others may run ──

  void point(int rank) {
    if (is_fault(simulated_fault::kind::failing_point, rank)) throw simulated_failure("a simulated failure");
    hand_on(rank);
  }
  /// Once more, in vain, a rank has asked whether something is there. @throws simulated_deadlock
  void ask(int rank) {
    auto& mine = of(rank);
    if (std::exchange(mine.asked_in, events_) != events_) mine.asked = 0;
    mine.doing = state::asks;
    if (++mine.asked > patience && !is_dead_ && nobody_gets_on()) die();
    hand_on(rank);
    mine.doing = state::ready;
    require_alive();
  }
  /// The same, in memory that ranks share. A rank that withdraws does not leave there: others may be at work on its gradient.
  /// @throws timeout_error  it leaves
  void look(int rank) {
    if (of(rank).activity != reduction_activity::withdrawn && !of(rank).has_left) {
      if (is_fault(simulated_fault::kind::departure, rank)) {
        leave(rank);
        throw_departed(rank);
      }
      if (is_fault(simulated_fault::kind::late_look, rank)) {
        of(rank).late_until = now_ + lateness;
        suspend(rank, state::late);
      }
    }
    ask(rank);
  }
  /// Waits for all ranks that are there. @return whether all of them said `mine`
  bool meet(int rank, bool mine) {
    auto& me = of(rank);
    const auto number = me.meetings++;
    if (answers_.size() <= number) answers_.resize(number + 1, 1);
    if (!mine) answers_[number] = 0;
    ++events_;
    while (!is_dead_ && !all_have_met(number)) suspend(rank, state::meets);
    return !is_dead_ && answers_[number] != 0;
  }

  // ── messages ──

  /// @throws std::bad_alloc, timeout_error, simulated_deadlock  nothing has been sent
  void start(int rank, std::span<const outgoing> out, std::span<const incoming> in, exchange& one) {
    one.has_ended = true;
    require_alive();
    if (of(rank).has_left) throw_departed(rank);
    ++of(rank).exchanges;
    if (is_fault(simulated_fault::kind::short_of_memory, rank)) throw std::bad_alloc();
    if (is_fault(simulated_fault::kind::departure, rank)) {
      leave(rank);
      throw_departed(rank);
    }
    one.rank = rank;
    one.received = one.taken = 0;
    one.what = exchange::problem::nothing;
    one.expected.assign(in.begin(), in.end());
    one.sent.clear();
    one.has_ended = false;
    for (const auto& message : out) send(rank, message, one);
    if (scribbles_)  // what arrives may be written at any time until the exchange has ended
      for (const auto& buffer : in) std::ranges::fill(buffer.bytes, std::byte{0x5A});
    ++events_;
    hand_on(rank);
  }

  /// @return whether the exchange has ended. @throws communication_error  it has, and not well
  bool go_on(exchange& one, bool may_wait) {
    if (one.has_ended) return true;
    for (bool has_asked = false;;) {
      if (is_dead_) {  // before anything is read: another rank may have freed what it has sent
        one.has_ended = true;
        require_alive();
      }
      if (advance(one)) break;
      if (may_wait) {
        suspend(one.rank, one.is_receiving() ? state::receives : state::sends, &one);
      } else if (std::exchange(has_asked, true)) {
        return false;
      } else {
        ask_for(one);
      }
    }
    if (!may_wait && random_.one_in(4)) {  // all is there, and it has not ended all the same
      ask_for(one);
      return false;
    }
    one.has_ended = true;
    if (one.what == exchange::problem::nothing) return true;
    ++of(one.rank).failed_exchanges;
    ended_.report([&] { throw communication_error(one.text()); });
    return true;
  }

  // ── memory ──

  /// Of the rank's node. @throws shared_memory_error  on all ranks
  std::shared_ptr<guarded_block> share(int rank, std::size_t ranks, std::size_t bytes) {
    const auto number = of(rank).shares++;
    const auto& fault = settings_.fault;
    if (fault.what == simulated_fault::kind::no_shared_memory && fault.at == number && of(rank).is_armed) {
      fault_came_ = true;
      throw shared_memory_error("adasum::simulated_communicator: a simulated lack of shared memory");
    }
    for (const auto& one : blocks_)
      if (one.number == number && one.node == node_of(rank)) return one.memory;
    const system_allocator<guarded_block> system;
    blocks_.push_back({number, node_of(rank), std::allocate_shared<guarded_block>(system, ranks, bytes)});
    return blocks_.back().memory;
  }
  int node_of(int rank) const { return settings_.nodes[index(rank)]; }

  // ── afterwards ──

  void describe(simulated_run& run) const {
    run.fault_came = fault_came_;
    run.turns = static_cast<std::size_t>(now_);
    run.trace = trace_;
    if (is_dead_) run.deadlock = who_waits_for_whom(at_death_) + "; seed " + std::to_string(settings_.seed);
    for (const auto& one : at_death_)
      if (one.doing != state::gone && one.activity == reduction_activity::unscheduled) run.waits_unscheduled = true;
    for (const auto& one : blocks_)
      if (!one.memory->is_whole()) run.damage = "memory that ranks share was written to outside of their parts";
  }

 private:
  static constexpr std::size_t longest_delay = 300;
  /// Questions without an answer, of every rank: more than any message takes, and more than many ranks need to meet in shared
  /// memory, again and again, without a message in between. (What they write there is not seen here.)
  static constexpr std::size_t patience = 20'000;
  static constexpr std::uint64_t lateness = 3000;  // enough turns for several reductions of a few ranks
  static constexpr std::uint64_t most_turns = 100'000'000;

  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
  rank_state& of(int rank) { return ranks_[index(rank)]; }
  const rank_state& of(int rank) const { return ranks_[index(rank)]; }

  /// Counts a call that may be the one that goes wrong.
  bool is_fault(simulated_fault::kind what, int rank) {
    const auto& fault = settings_.fault;
    if (fault.what != what || fault.rank != rank || !of(rank).is_armed) return false;
    const bool comes = of(rank).calls++ == fault.at;
    fault_came_ = fault_came_ || comes;
    return comes;
  }
  void note(std::uint64_t value) { trace_ = rng::mixed(trace_ ^ value); }

  void leave(int rank) {
    if (std::exchange(of(rank).has_left, true)) return;
    mail_.drop_uncopied_of(rank);
    ++events_;
  }
  void throw_departed(int rank) {
    throw timeout_error({"adasum::simulated_communicator: rank ", rank, " has left"}, rank);
  }
  void require_alive() const {
    if (is_dead_) ended_.report([] { throw simulated_deadlock("adasum::simulated_communicator: nobody can go on"); });
  }

  void send(int rank, const outgoing& message, exchange& one) {
    const bool emptied = is_fault(simulated_fault::kind::withheld_message, rank);
    of(rank).is_cut_off = of(rank).is_cut_off || is_fault(simulated_fault::kind::cut_off, rank);
    const bool is_lost = of(rank).is_cut_off;
    auto* const made =
        mail_.make(message.peer, message.bytes.first(message.withheld || emptied ? 0 : message.bytes.size()),
                   random_.below(4) < copied_in_4_ || is_lost);
    auto& queue = mail_.queue(rank, message.peer);
    queue.last_arrival = std::max(queue.last_arrival, now_ + (delay_ > 0 ? random_.below(delay_ + 1) : 0));
    made->arrives = queue.last_arrival;
    if (!is_lost) queue.waiting.push_back(made);
    one.sent.push_back(made);
    note(made->bytes.size());
  }

  bool has_come(const exchange& one) const {
    const int peer = one.awaited();
    const auto& waiting = mail_.queue(peer, one.rank).waiting;
    return waiting.empty() ? of(peer).has_left : waiting.front()->arrives <= now_;
  }
  bool has_gone(const exchange& one) const {
    const auto& sent = *one.sent[one.taken];
    return sent.is_copied || sent.is_taken || of(sent.to).has_left;
  }
  /// As far as it can. @return whether all messages have come and gone
  bool advance(exchange& one) {
    for (; one.is_receiving(); ++one.received) {
      if (!has_come(one)) return false;
      receive(one);
    }
    for (; one.taken < one.sent.size(); ++one.taken) {
      if (!has_gone(one)) return false;
      if (one.sent[one.taken]->is_copied || one.sent[one.taken]->is_taken) continue;
      one.what = exchange::problem::has_left;
      one.problem_of = one.awaited();
    }
    return true;
  }
  void receive(exchange& one) {
    const auto& buffer = one.expected[one.received];
    auto& waiting = mail_.queue(buffer.peer, one.rank).waiting;
    ++events_;
    if (waiting.empty() || waiting.front()->bytes.size() != buffer.bytes.size()) {
      one.what = waiting.empty() ? exchange::problem::has_left : exchange::problem::other_size;
      one.problem_of = buffer.peer;
    } else if (!buffer.bytes.empty()) {
      std::memcpy(buffer.bytes.data(), waiting.front()->bytes.data(), buffer.bytes.size());
    }
    if (waiting.empty()) return;
    waiting.front()->take();
    waiting.erase(waiting.begin());
  }
  void ask_for(exchange& one) {
    try {
      ask(one.rank);
    } catch (...) {
      one.has_ended = true;
      throw;
    }
  }

  // ── turns ──

  /// Until it can go on.
  void suspend(int rank, state waiting, exchange* in = nullptr) {
    of(rank).doing = waiting;
    of(rank).in = in;
    hand_on(rank);
    of(rank).doing = state::ready;
  }
  void hand_on(int self) {
    const int next = choose(self);
    note(index(next) + 1);
    if (next == self) return;
    scheduler_.give(next < 0 ? ranks_.size() : index(next));
    if (of(self).doing != state::gone) scheduler_.await(index(self));
  }
  /// @return a rank that can go on; negative if all are gone
  int choose(int self) {
    for (++now_;;) {
      able_.clear();
      busy_.clear();
      bool any_left = false;
      for (int rank = 0; rank < size(); ++rank) {
        any_left = any_left || of(rank).doing != state::gone;
        if (!can_go_on(rank)) continue;
        able_.push_back(rank);
        if (of(rank).doing != state::asks) busy_.push_back(rank);
      }
      if (!any_left) return -1;
      const bool goes_on_for_ever = now_ > most_turns && !is_dead_;
      if (!able_.empty() && !goes_on_for_ever) {
        // To ask again is mostly in vain while others have something to do.
        const bool only_busy = !busy_.empty() && !random_.one_in(8);
        return order_.next(only_busy ? busy_ : able_, self, self >= 0 && of(self).doing == state::asks);
      }
      if (const auto then = next_arrival(); then && !goes_on_for_ever)
        now_ = *then;
      else
        die();
    }
  }
  bool can_go_on(int rank) const {
    const auto& one = of(rank);
    if (one.doing == state::gone) return false;
    if (is_dead_ || one.doing == state::ready || one.doing == state::asks) return true;
    if (one.doing == state::late) return one.late_until <= now_;
    if (one.doing == state::meets) return all_have_met(one.meetings - 1);
    return one.doing == state::receives ? has_come(*one.in) : has_gone(*one.in);
  }
  bool all_have_met(std::size_t number) const {
    return std::ranges::all_of(
        ranks_, [&](const rank_state& one) { return one.doing == state::gone || one.meetings > number; });
  }
  /// When the first message comes for which a rank waits, or a late rank goes on.
  std::optional<std::uint64_t> next_arrival() const {
    std::optional<std::uint64_t> first;
    for (const auto& one : ranks_) {
      if (one.doing == state::late) first = std::min(first.value_or(one.late_until), one.late_until);
      if (one.doing != state::receives) continue;
      const auto& waiting = mail_.queue(one.in->awaited(), one.in->rank).waiting;
      if (!waiting.empty()) first = std::min(first.value_or(waiting.front()->arrives), waiting.front()->arrives);
    }
    return first;
  }
  /// Whether ranks only ask and wait, and have done so for long enough.
  bool nobody_gets_on() const {
    for (int rank = 0; rank < size(); ++rank) {
      const auto& one = of(rank);
      if (one.doing == state::asks ? one.asked_in != events_ || one.asked <= patience : can_go_on(rank)) return false;
    }
    return !next_arrival();
  }
  void die() {
    is_dead_ = true;
    at_death_.assign(ranks_.begin(), ranks_.end());
    for (auto& one : at_death_)
      one.awaited = one.doing == state::receives || one.doing == state::sends ? one.in->awaited() : -1;
  }

  simulation_settings settings_;
  rng random_;
  order_of_turns order_;
  list<rank_state> ranks_;
  std::vector<communicator_state> states_;
  mailbox mail_;
  scheduler scheduler_;
  list<shared_block> blocks_;
  list<char> answers_;  // of each meeting
  list<int> able_, busy_;
  ended_exchange ended_;
  std::uint64_t now_ = 0, events_ = 1, trace_ = 0;
  std::size_t delay_ = 0, copied_in_4_ = 0;
  bool scribbles_ = false, is_cancelled_ = false, fault_came_ = false, is_dead_ = false;
  list<rank_state> at_death_;
};

}  // namespace adasum::detail::simulated
