// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <chrono>
#include <concepts>
#include <cstddef>
#include <memory>
#include <thread>
#include <type_traits>
#include <utility>

#include "stay_loaded.hpp"
#include "waiting.hpp"

namespace adasum::detail {
class shared_votes;
}

namespace adasum {

/// What a communicator keeps of the single calls that were made on it, so that a call that was made before finds its plan:
/// the last `most` different ones, and of these only the last ones whose gradients together have at most `most_bytes`
/// or, if that is more, four times as many bytes as the longest of them. All ranks drop the same: that follows from the
/// calls alone. Used by one thread at a time, as the communicator is.
class kept_plans {
 public:
  kept_plans() = default;
  kept_plans(const kept_plans&) = delete;
  kept_plans& operator=(const kept_plans&) = delete;
  ~kept_plans() { clear(); }

  static constexpr std::size_t most = 64;                            ///< calls that are kept at the most
  static constexpr std::size_t most_bytes = std::size_t{256} << 20;  ///< bytes of their gradients together, in general

  /// One call: derived classes hold its arguments, and its plan.
  class call {
   public:
    virtual ~call() = default;

   protected:
    /// @tparam Call  the derived class. @param bytes  of the gradient
    template <class Call>
    call(std::type_identity<Call>, std::size_t bytes) : type_(&type_of<Call>), bytes_(bytes) {
      detail::stay_loaded();  // the communicator may be another library's, and destroys it later
    }

   private:
    friend kept_plans;
    template <class>
    static inline char type_of = 0;  // its address tells types apart; not const, or linkers might merge them
    const void* type_;
    std::size_t bytes_;
    call* next_ = nullptr;  // the one before it
  };

  /// The call of this type for which matches(call) holds; null if there is none.
  template <std::derived_from<call> Call, class Matches>
  Call* find(const Matches& matches) const {
    for (auto* one = newest_; one; one = one->next_)
      if (one->type_ == &call::type_of<Call>)
        if (auto* const found = static_cast<Call*>(one); matches(static_cast<const Call&>(*found))) return found;
    return nullptr;
  }
  /// Keeps one more call, the newest, and drops those that are then too many.
  void add(std::unique_ptr<call> one) noexcept;
  /// Drops all of them.
  void clear() noexcept { drop(newest_); }

 private:
  /// This one and those before it. @param from  what refers to it, null afterwards
  static void drop(call*& from) noexcept;

  call* newest_ = nullptr;  // owned, as are those before it
};

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
  // Memory in which all ranks tell each other what they are about to do; null if they do so by messages.
  detail::shared_votes* votes() const { return votes_.get(); }
  void set_votes(std::shared_ptr<detail::shared_votes> votes) { votes_ = std::move(votes); }
  /// @endcond

 private:
  const communicator_state* other_ = nullptr;
  communicator_state* shared_ = this;  // that of the last communicator, which sends
  bool reduction_in_flight_ = false, gave_up_ = false;
  std::chrono::duration<double> timeout_ = no_timeout;
  detail::permitted_thread permitted_;
  std::shared_ptr<detail::shared_votes> votes_;
  kept_plans plans_;  // destroyed first: they ask whether this rank has given up
};

}  // namespace adasum

#if ADASUM_DEFINITIONS
#include <algorithm>

#include "error.hpp"

namespace adasum {

ADASUM_INLINE void kept_plans::add(std::unique_ptr<call> one) noexcept {
  one->next_ = newest_;
  newest_ = one.release();
  std::size_t number = 0, all = 0, longest = 0;
  for (auto** kept = &newest_; *kept; kept = &(*kept)->next_) {
    all += (*kept)->bytes_;
    longest = std::max(longest, (*kept)->bytes_);
    if (++number > most || all > std::max(most_bytes, 4 * longest)) return drop(*kept);
  }
}

ADASUM_INLINE void kept_plans::drop(call*& from) noexcept {
  auto* one = std::exchange(from, nullptr);
  while (one) delete std::exchange(one, one->next_);
}

}  // namespace adasum

namespace adasum::detail {

ADASUM_INLINE void permitted_thread::require(const char* call) const {
  if (why && std::this_thread::get_id() != thread) throw bad_input({call, ": ", why});
}

}  // namespace adasum::detail
#endif
