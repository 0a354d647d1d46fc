// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../core/error.hpp"

namespace adasum {

/// What goes wrong in a simulation: once, on one rank.
struct simulated_fault {
  /// What goes wrong.
  enum class kind {
    nothing,           ///< all goes well
    failing_point,     ///< the rank's call number `at` of simulated_communicator::point() throws a simulated_failure
    short_of_memory,   ///< its exchange number `at` throws std::bad_alloc, and has exchanged nothing
    withheld_message,  ///< in place of the message that it sends as number `at`, an empty one arrives
    departure,         ///< it leaves at its exchange number `at`: that throws, and all that follow. Where it waits in
                       ///< memory that ranks share, each time that it looks there again counts as one
    no_shared_memory,  ///< call number `at` of share() throws a shared_memory_error, on every rank
    late_look,  ///< waiting in memory that ranks share, it looks there for the time number `at` only when the others have
                ///< had 3000 turns
    cut_off,    ///< from the message that it sends as number `at` on, none arrives, so that others wait until a timeout
  };
  kind what = kind::nothing;  ///< what goes wrong
  int rank = 0;               ///< on which rank
  std::size_t at = 0;         ///< counted from 0
};

/// What simulated_communicator::point() throws. Not an exception of the library.
struct simulated_failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Nobody could go on: each rank that had not returned waited for another. Thrown on all of them.
class simulated_deadlock : public communication_error {
  using communication_error::communication_error;
};

/// All that a run depends on, besides the function that ranks run.
struct simulation_settings {
  /// Says who runs next, how long messages take, when posted exchanges end.
  std::uint64_t seed = 0;
  /// What goes wrong.
  simulated_fault fault{};
  /// The node of each rank, see communicator_for; ranks of a node share memory. Empty: one node.
  std::vector<int> nodes{};
  /// A message takes so many turns at the most, and never more than 300; the seed may choose less.
  std::size_t longest_delay = 200;
};

/// What became of a simulation.
struct simulated_run {
  /// What each rank's function threw; null where it returned.
  std::vector<std::exception_ptr> thrown;
  /// Empty, or who waited for whom when nobody could go on.
  std::string deadlock;
  /// Whether a rank was then in a sum of its reduction that no stage calls for: where segments are combined vector by
  /// vector, a rank that lacks an inner product, since a message is lost or another rank has left in the middle, does not
  /// know that the others add more.
  bool waits_unscheduled = false;
  /// Empty, or what was written to that belongs to no rank.
  std::string damage;
  /// Whether the fault has come.
  bool fault_came = false;
  /// The time that has passed: turns that were taken, and those that all have waited for a message.
  std::size_t turns = 0;
  /// A hash of all turns and messages: the same for the same settings.
  std::uint64_t trace = 0;
};

}  // namespace adasum
