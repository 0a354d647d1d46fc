// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "../../core/error.hpp"
#include "../../core/segments.hpp"
#include "../references/communicator_ref.hpp"

namespace adasum::detail {

struct call_signature;
struct hashed_signature;
struct agreement_memory;

/// @param object, call  the user's call, in two parts
/// @throws bad_input  a plan is in flight on this communicator; nothing has been sent
void require_no_reduction(const communicator_ref& comm, const char* object, const char* call);

/// What all ranks set up together: a plan, its buffer. Where they meet in it, and that a rank on which something fails
/// tells the others at the next of these points, so that all of them throw and none waits for another.
///
///     collective_setup(call, comm, compares).run([&](auto& together) { …; together.meet(…); …; together.meet(…); });
///
/// The last of these is at the end: after it, nothing can fail.
class collective_setup {
 public:
  /// @param compares  options::check_agreement
  /// @throws bad_input  a plan is in flight on this communicator, or this thread must not use it; nothing has been sent
  collective_setup(const char* call, const communicator_ref& comm, bool compares);
  collective_setup(const collective_setup&) = delete;
  collective_setup& operator=(const collective_setup&) = delete;
  ~collective_setup();

  int size() const { return comm_.size(); }
  const communicator_ref& comm() const { return comm_; }

  /// Waits for the other ranks.
  /// @param bytes  of memory that this rank needs to share with others. @return the most that one needs
  /// @throws agreement_error, communication_error  one of them has failed, or they disagree; on all ranks
  /// @throws timeout_error  one of them has not come
  std::size_t meet(hashed_signature mine, segments_view segments, agreement_memory& memory, std::size_t bytes = 0);
  /// The same, of what has no segments.
  void meet(const call_signature& mine);
  /// From the end of this set-up on, ranks meet in memory that all of them share, if there is some. Between these two, and again
  /// after them, they must meet(): one rank may fail in either alone, and the second is collective.
  void prepare_votes();
  void share_votes();
  bool has_votes() const { return votes_ != nullptr; }
  /// Something is wrong with this rank's input. @throws agreement_error, on all ranks, if they compare; else bad_input
  [[noreturn]] void refuse(const std::string& problem);
  /// @return what set_up(*this) returns. @throws what it throws, once the other ranks have been told. Then the plans that
  ///         the communicator keeps for single calls are forgotten, on all ranks
  template <class SetUp>
  auto run(SetUp&& set_up) {
    try {
      return std::forward<SetUp>(set_up)(*this);
    } catch (const error& problem) {
      tell(problem.what());
      forget();
      throw;
    } catch (...) {
      tell(nullptr);
      forget();
      throw;
    }
  }

 private:
  /// What this rank was about to set up, and plans that are kept: the others may have been in a single call.
  void forget() noexcept;
  /// @param problem  for the others' messages; null if it is not this library's
  void tell(const char* problem) const noexcept;

  const char* call_;
  communicator_ref comm_;
  bool compares_;
  bool all_know_ = false;                // of the exception that is thrown
  std::shared_ptr<shared_votes> votes_;  // that no rank uses before all of them have some
};

}  // namespace adasum::detail

#if ADASUM_DEFINITIONS
#include <new>

#include "../../core/communicator_state.hpp"
#include "agreement.hpp"
#include "call_signature.hpp"
#include "shared_votes.hpp"

namespace adasum::detail {

ADASUM_INLINE void require_no_reduction(const communicator_ref& comm, const char* object, const char* call) {
  if (comm.has_reduction_in_flight())
    throw bad_input({object, call,
                     ": another plan is in flight on this communicator, and their messages would be mixed up; "
                     "call its wait() first, or give each plan a communicator of its own"});
}

ADASUM_INLINE collective_setup::collective_setup(const char* call, const communicator_ref& comm, bool compares)
    : call_(call), comm_(comm), compares_(compares && comm.size() > 1) {
  comm.require_usable(call);
  require_no_reduction(comm, call, "");
}

ADASUM_INLINE std::size_t collective_setup::meet(hashed_signature mine, segments_view segments,
                                                 agreement_memory& memory, std::size_t bytes) {
  all_know_ = true;
  try {
    bytes = agree(comm_, agreement(mine, compares_, segments, comm_.rank(), comm_.size(), memory, bytes));
  } catch (const timeout_error& late) {
    throw timeout_error({late.what(), ", in ", call_}, late.rank());
  }
  all_know_ = false;
  return bytes;
}

ADASUM_INLINE void collective_setup::meet(const call_signature& mine) {
  const std::size_t none[] = {0};
  agreement_memory memory(compares_ ? size() : 0);
  meet(mine, segments_view{none}, memory);
}

ADASUM_INLINE void collective_setup::prepare_votes() { votes_ = std::make_shared<shared_votes>(); }
ADASUM_INLINE void collective_setup::share_votes() try {
  if (!votes_->share(comm_)) votes_.reset();
} catch (const shared_memory_error&) {  // on all ranks: by messages, then
  votes_.reset();
}
ADASUM_INLINE collective_setup::~collective_setup() {
  if (votes_) comm_.state()->set_votes(std::move(votes_));
}

ADASUM_INLINE void collective_setup::refuse(const std::string& problem) {
  if (compares_) {
    call_signature mine;
    mine.set(mine.problem, problem);
    meet(mine);
  }
  throw bad_input(problem);
}

ADASUM_INLINE void collective_setup::forget() noexcept {
  votes_.reset();
  if (comm_.state()) comm_.state()->plans().clear();
}

ADASUM_INLINE void collective_setup::tell(const char* problem) const noexcept {
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
#endif
