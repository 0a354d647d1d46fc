// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <concepts>
#include <string>

#include "../../core/error.hpp"

namespace adasum::detail {

/// Whether a communicator knows of a plan in flight on it (core/concepts.hpp).
template <class Comm>
concept knows_of_reductions = requires(const Comm& comm) {
  { comm.reduction_in_flight() } -> std::same_as<bool&>;
};

/// @param object, call  the user's call, in two parts
/// @throws bad_input  a plan is in flight on this communicator; nothing has been sent
template <class Comm>
void require_no_reduction(const Comm& comm, const char* object, const char* call) {
  if constexpr (knows_of_reductions<Comm>)
    if (comm.reduction_in_flight())
      throw bad_input(std::string(object) + call +
                      ": another plan is in flight on this communicator, and their messages would be mixed up; "
                      "call its wait() first, or give each plan a communicator of its own");
}

/// @throws bad_input  this thread must not use the communicator; nothing has been sent
template <class Comm>
void require_usable(const Comm& comm, const char* call) {
  if constexpr (requires { comm.require_usable(call); }) comm.require_usable(call);
}

template <class Comm>
void set_reduction_in_flight(const Comm& comm, bool is_in_flight) {
  if constexpr (knows_of_reductions<Comm>) comm.reduction_in_flight() = is_in_flight;
}

}  // namespace adasum::detail
