// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <concepts>
#include <string>

#include "../../core/error.hpp"
#include "../references/communicator_ref.hpp"

namespace adasum::detail {

/// @param object, call  the user's call, in two parts
/// @throws bad_input  a plan is in flight on this communicator; nothing has been sent
inline void require_no_reduction(const communicator_ref& comm, const char* object, const char* call) {
  if (comm.has_reduction_in_flight())
    throw bad_input(std::string(object) + call +
                    ": another plan is in flight on this communicator, and their messages would be mixed up; "
                    "call its wait() first, or give each plan a communicator of its own");
}

}  // namespace adasum::detail
