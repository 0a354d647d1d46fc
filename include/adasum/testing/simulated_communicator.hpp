// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <concepts>
#include <cstddef>
#include <exception>
#include <memory>
#include <span>

#include "../core/concepts.hpp"
#include "../core/error.hpp"
#include "../core/joined_threads.hpp"
#include "../core/message.hpp"
#include "../detail/references/shared_window_ref.hpp"
#include "simulation/scheduler.hpp"
#include "simulation/settings.hpp"
#include "simulation/simulator.hpp"

namespace adasum {

/// A communicator for tests. Its ranks are threads of which one runs at a time; a seed says which, how long each message
/// takes, when posted exchanges end, and whether a message is copied when it is sent or lies with the sender until it is
/// taken. So a run can be repeated, and a thousand seeds are a thousand orders of events. Where nobody can go on, that is
/// seen at once. See simulate().
///
/// Between two ranks, messages keep their order. Ranks of one node share memory, and see each other's writes when they get
/// their turn. Buffers of incoming messages may be written to before their messages are there. What it needs itself, it
/// gets from the system and not from operator new, which a test may count or let fail.
///
/// A handle to a simulation that has not ended yet: it need not be kept, as a rank leaves when its function ends. For
/// execution spaces of the host.
class simulated_communicator {
  using simulator = detail::simulated::simulator;

 public:
  /// @cond internal
  simulated_communicator(simulator& simulation, int rank) : simulator_(&simulation), rank_(rank) {}
  /// @endcond

  /// The number of this rank, from 0.
  int rank() const { return rank_; }
  /// How many ranks there are.
  int size() const { return simulator_->size(); }

  // ── for what runs in a simulation ──

  /// Another rank may run here. For rules and execution spaces of a test: call it where they may be interrupted.
  /// @throws simulated_failure  where the simulation's fault says so
  void point() const { simulator_->point(rank_); }
  /// Waits for all other ranks that have not ended, without a message. @return whether all of them said true
  bool all(bool mine) const { return simulator_->meet(rank_, mine); }
  /// Says whether the simulation's fault may come on this rank from here on; at first it may. What the fault counts, it
  /// counts only while it may come.
  void arm(bool armed) const { simulator_->arm(rank_, armed); }

  /// Whether the simulation's fault has come, on whichever rank.
  bool fault_came() const { return simulator_->fault_came(); }
  /// How many exchanges of this rank have ended with an error, as those do in which another rank says that it has failed.
  std::size_t failed_exchanges() const { return simulator_->failed_exchanges(rank_); }
  /// Called by reductions, see simulated_run::waits_unscheduled.
  void note_activity(detail::reduction_activity activity) const { simulator_->note_activity(rank_, activity); }

  // ── the concept communicator_for, and what is optional there ──

  communicator_state& state() const { return simulator_->state_of(rank_); }
  std::span<const int> nodes() const { return simulator_->settings().nodes; }

  template <class Space>
    requires(!device_space<Space>)
  void exchange(const Space&, std::span<const outgoing> out, std::span<const incoming> in) const {
    detail::simulated::exchange one;
    simulator_->start(rank_, out, in, one);
    simulator_->go_on(one, true);
  }

  /// See the concept pending_exchange.
  class pending {
   public:
    bool test() { return simulator_ == nullptr || simulator_->go_on(exchange_, false); }
    void wait() {
      if (simulator_ != nullptr) simulator_->go_on(exchange_, true);
    }

   private:
    friend simulated_communicator;
    simulator* simulator_ = nullptr;
    detail::simulated::exchange exchange_;
  };
  template <class Space>
    requires(!device_space<Space>)
  void post(const Space&, std::span<const outgoing> out, std::span<const incoming> in, pending& one) const {
    one.simulator_ = simulator_;
    simulator_->start(rank_, out, in, one.exchange_);
  }

  /// See the concept shared_window.
  class memory {
   public:
    static constexpr bool same_address_space = true;
    std::span<const int> ranks() const { return ranks_; }
    std::byte* of(std::size_t index) const { return block_->of(index); }
    /// How many each rank has.
    std::size_t bytes() const { return block_->bytes(); }
    bool has_left(std::size_t index) const { return simulator_->has_left(ranks_[index]); }
    /// @throws simulated_deadlock  nobody can go on
    /// @throws timeout_error       this rank leaves, as the simulation's fault says
    void progress() const { simulator_->look(rank_); }

   private:
    friend simulated_communicator;
    simulator* simulator_ = nullptr;
    int rank_ = 0;
    detail::simulated::list<int> ranks_;
    std::shared_ptr<detail::simulated::guarded_block> block_;
  };
  memory share(std::size_t bytes) const {
    memory shared;
    shared.simulator_ = simulator_;
    shared.rank_ = rank_;
    for (int rank = 0; rank < size(); ++rank)
      if (simulator_->node_of(rank) == simulator_->node_of(rank_)) shared.ranks_.push_back(rank);
    shared.block_ = simulator_->share(rank_, shared.ranks_.size(), bytes);
    return shared;
  }

 private:
  simulator* simulator_;
  int rank_;
};

/// @cond internal
template <std::derived_from<simulated_communicator> Comm>
struct detail::own_activity<Comm> {
  static void note(const void* comm, reduction_activity what) { static_cast<const Comm*>(comm)->note_activity(what); }
};
template <std::derived_from<simulated_communicator::memory> Memory>
struct detail::own_memory<Memory> : memory_defaults {
  static constexpr unsigned most_looks = 200;
  static std::size_t bytes(const simulated_communicator::memory& memory, std::size_t) { return memory.bytes(); }
};
/// @endcond

/// Runs function(communicator) on so many simulated ranks, and returns when all of them have ended. The ranks are threads, of
/// which one runs at a time, all on one processor; so is each thread that a rank starts (a threads_space made there has one).
///
///     for (std::uint64_t seed = 0; seed < 1000; ++seed) {
///       const auto run = adasum::simulate(5, {.seed = seed}, [](const adasum::simulated_communicator& comm) { … });
///       if (!run.deadlock.empty()) …
///     }
///
/// @throws bad_input  size < 1, nodes that are not those of so many ranks, or a fault of a rank that is not there
template <class Function>
simulated_run simulate(int size, const simulation_settings& settings, const Function& function) {
  if (size < 1) throw bad_input({"adasum::simulate: needs at least one rank, not ", size});
  if (!settings.nodes.empty() && settings.nodes.size() != static_cast<std::size_t>(size))
    throw bad_input(
        {"adasum::simulate: nodes are given for ", settings.nodes.size(), " of ", detail::counted(size, "rank")});
  if (settings.fault.rank < 0 || settings.fault.rank >= size)
    throw bad_input({"adasum::simulate: the fault is for rank ", settings.fault.rank, ", but the communicator has ",
                     detail::counted(size, "rank")});
  detail::simulated::simulator simulation(size, settings);
  simulated_run run;
  run.thrown.resize(static_cast<std::size_t>(size));
  {
    const detail::simulated::one_processor here;
    detail::joined_threads threads;
    try {
      for (int rank = 0; rank < size; ++rank)
        threads.start([&, rank] {
          if (!simulation.await_first_turn(rank)) return;
          try {
            function(simulated_communicator(simulation, rank));
          } catch (...) {
            run.thrown[static_cast<std::size_t>(rank)] = std::current_exception();
          }
          simulation.end(rank);
        });
    } catch (...) {  // the system has no more threads
      simulation.cancel(threads.size());
      throw;
    }
    simulation.run();
  }
  simulation.describe(run);
  return run;
}

}  // namespace adasum
