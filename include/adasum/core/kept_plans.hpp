// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <concepts>
#include <cstddef>
#include <memory>
#include <type_traits>

#include "stay_loaded.hpp"

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

}  // namespace adasum

#if ADASUM_DEFINITIONS
#include <algorithm>
#include <utility>

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
#endif
