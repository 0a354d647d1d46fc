// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <new>
#include <string>

#include "../../core/error.hpp"
#include "../../core/kept_plans.hpp"
#include "agreement.hpp"
#include "joint_set_up.hpp"
#include "one_in_flight.hpp"

namespace adasum::detail {

ADASUM_INLINE joint_set_up::joint_set_up(const char* call, const communicator_ref& comm, bool compares)
    : call_(call), comm_(comm), compares_(compares && comm.size() > 1) {
  comm.require_usable(call);
  require_no_reduction(comm, call, "");
}

ADASUM_INLINE std::size_t joint_set_up::meet(const call_signature& mine, segments_view segments,
                                             agreement_memory& memory, std::size_t bytes) {
  all_know_ = true;
  try {
    bytes = agree(comm_, agreement(mine, compares_, segments, comm_.rank(), comm_.size(), memory, bytes));
  } catch (const timeout_error& late) {
    throw timeout_error(std::string(late.what()) + ", in " + call_, late.rank());
  }
  all_know_ = false;
  return bytes;
}

ADASUM_INLINE void joint_set_up::refuse(const std::string& problem) {
  if (compares_) {
    call_signature mine;
    mine.set(mine.problem, problem);
    agreement_memory memory(comm_.size());
    const std::size_t none[] = {0};
    meet(mine, segments_view{none}, memory);
  }
  throw bad_input(problem);
}

ADASUM_INLINE void joint_set_up::forget_kept_plans() const noexcept {
  if (auto* const kept = comm_.kept_plans()) kept->clear();
}

ADASUM_INLINE void joint_set_up::tell(const char* problem) const noexcept {
  if (all_know_) return;
  call_signature mine;
  agreement_memory memory;
  try {
    if (problem) {
      mine.set(mine.problem, problem);
      if (compares_) memory = agreement_memory(comm_.size());
    }
  } catch (const std::bad_alloc&) {  // then they are told that, and not what
  }
  try {
    const std::size_t none[] = {0};
    const bool can_say = problem != nullptr && (!compares_ || !memory.empty());
    if (!can_say) mine.set(mine.problem, "failed");
    agree(comm_, agreement(mine, compares_, segments_view{none}, comm_.rank(), comm_.size(), memory));
  } catch (...) {  // this rank throws what it has
  }
}

}  // namespace adasum::detail
