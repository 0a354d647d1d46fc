// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <chrono>
#include <thread>

#include "kept_plans.hpp"
#include "waiting_time.hpp"

namespace adasum {

/// @cond internal
namespace detail {
/// The one thread that may use something, if that is confined to one.
struct permitted_thread {
  const char* why = nullptr;  ///< it is confined, for messages; null if it is not
  std::thread::id thread{};
  /// @throws bad_input  this thread is another one
  void require(const char* call) const;
};
}  // namespace detail
/// @endcond

/// What the library and a communicator tell each other, and the plans that the library keeps for single calls: one object
/// for all handles of a rank, destroyed with the last of them. Plans that are kept there hold no handle, but the windows and
/// pending exchanges that the communicator has made for them; so these must not hold one either. Used by one thread at a time, as
/// the communicator is.
///
///     class my_communicator {
///      public:
///       adasum::communicator_state& state() const { return *state_; }
///       …
///      private:
///       std::shared_ptr<adasum::communicator_state> state_ = std::make_shared<adasum::communicator_state>();
///     };
class communicator_state {
 public:
  communicator_state() = default;
  /// Of a communicator that sends its messages by another one: what is set and asked here is the other's, but for the plans,
  /// and that this communicator may give up by itself.
  /// @param other  the other's state, which must outlive this object; null if it has none
  explicit communicator_state(communicator_state* other) : other_(other), shared_(other ? other->shared_ : this) {}
  communicator_state(const communicator_state&) = delete;
  communicator_state& operator=(const communicator_state&) = delete;

  /// Whether a plan is in flight: then other reductions are refused, because their messages would be taken for the plan's.
  bool reduction_in_flight() const { return shared_->reduction_in_flight_; }
  /// For the library.
  void set_reduction_in_flight(bool is_in_flight) { shared_->reduction_in_flight_ = is_in_flight; }

  /// Whether this rank has given up waiting for another, so that messages may still be in flight: the library then never
  /// frees its memory for them.
  bool gave_up() const { return gave_up_ || (other_ != nullptr && other_->gave_up()); }
  /// For the communicator, if it leaves messages in flight when it gives up. Every later exchange must throw a timeout_error.
  void give_up() { gave_up_ = true; }

  /// How long this rank waits for others at the most, in memory that ranks share. (For messages, that is up to exchange().)
  std::chrono::duration<double> timeout ADASUM_NO_MACRO() const { return shared_->timeout_; }
  /// For the communicator, at any time. @param timeout  positive; at first it is infinite
  void set_timeout(std::chrono::duration<double> timeout) { shared_->timeout_ = timeout; }

  /// For single calls that are made again.
  kept_plans& plans() { return plans_; }

  /// @cond internal
  // Asked for by the library's own communicators: an error then names the call, before anything is sent.
  void permit(const detail::permitted_thread& only) { permitted_ = only; }
  void require_usable(const char* call) const { shared_->permitted_.require(call); }
  /// @endcond

 private:
  const communicator_state* other_ = nullptr;
  communicator_state* shared_ = this;  // that of the last communicator, which sends
  bool reduction_in_flight_ = false, gave_up_ = false;
  std::chrono::duration<double> timeout_ = no_timeout;
  detail::permitted_thread permitted_;
  kept_plans plans_;  // destroyed first: they ask whether this rank has given up
};

}  // namespace adasum

/// @cond internal
#if ADASUM_DEFINITIONS
#include "error.hpp"

namespace adasum::detail {

ADASUM_INLINE void permitted_thread::require(const char* call) const {
  if (why && std::this_thread::get_id() != thread) throw bad_input({call, ": ", why});
}

}  // namespace adasum::detail
#endif
/// @endcond
