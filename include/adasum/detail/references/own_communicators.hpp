// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <thread>

/// What the library's own communicators and their memory tell the engine beyond the concepts. Each specialises these templates
/// where it is defined; for other types, what the templates say holds.
namespace adasum::detail {

/// Of memory that ranks share.
struct memory_defaults {
  /// How often a rank looks at what another one writes there, before it offers the processor (spinning.hpp): seldom where it
  /// waits for ranks that run when it does not.
  static constexpr unsigned most_looks = 1u << 15;
  /// How many bytes each rank has, where another rank may have asked for fewer. @param asked  by this rank
  template <class Memory>
  static std::size_t bytes(const Memory&, std::size_t asked) {
    return asked;
  }
  /// Lets others have the processor for a moment.
  template <class Memory>
  static void rest(const Memory&) {
    std::this_thread::yield();
  }
};
template <class Memory>
struct own_memory : memory_defaults {};

/// What a rank does in a reduction: simulated ranks distinguish waits that only a timeout can end from others.
enum class reduction_activity {
  scheduled,    ///< what its stages call for
  unscheduled,  ///< it adds numbers that they do not call for: see recombine. A rank that has failed may not know
  withdrawn     ///< it has failed, and lets no other wait
};
/// Whether a communicator is told of that; then note(comm, activity) does so.
template <class Comm>
struct own_activity {
  static constexpr bool is_noted = false;
};

/// Whether a communicator with share() has memory to share: one that is chosen at run time may have none.
template <class Comm>
struct own_sharing {
  static bool can_share(const Comm&) { return true; }
};

}  // namespace adasum::detail
