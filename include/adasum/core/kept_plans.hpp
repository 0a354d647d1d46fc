// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include "stay_loaded.hpp"

namespace adasum {

/// What a communicator keeps of the single calls that were made on it, so that a call that was made before finds its plan:
/// the last `most` different ones, and of these only the last ones whose gradients together have at most `most_bytes`
/// or, if that is more, four times as many bytes as the longest of them. All ranks drop the same: that follows from the
/// calls alone. Used by one thread at a time, as the communicator is.
class kept_plans {
 public:
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
  };

  /// The call of this type for which matches(call) holds; null if there is none.
  template <std::derived_from<call> Call, class Matches>
  Call* find(const Matches& matches) const {
    for (const auto& one : calls_)
      if (one && one->type_ == &call::type_of<Call>)
        if (auto* const found = static_cast<Call*>(one.get()); matches(std::as_const(*found))) return found;
    return nullptr;
  }
  /// Keeps one more call, the newest, and drops those that are then too many.
  void add(std::unique_ptr<call> one) noexcept {
    std::shift_right(calls_.begin(), calls_.end(), 1);
    calls_.front() = std::move(one);
    std::size_t all = 0, longest = 0;
    for (auto kept = calls_.begin(); kept != calls_.end() && *kept; ++kept) {
      all += (*kept)->bytes_;
      longest = std::max(longest, (*kept)->bytes_);
      if (all > std::max(most_bytes, 4 * longest)) {
        std::for_each(kept, calls_.end(), drop);
        return;
      }
    }
  }
  /// Drops all of them.
  void clear() noexcept { std::ranges::for_each(calls_, drop); }

 private:
  static void drop(std::unique_ptr<call>& one) { one.reset(); }

  std::array<std::unique_ptr<call>, most> calls_;  // the newest first
};

/// A refinement of communicators: kept_plans() is one object for all handles of a rank, or null; without_kept_plans() is a
/// handle that does not own it, for the plans in it (or neither of the two would ever be destroyed).
template <class C>
concept plan_keeping_communicator = requires(const C& comm) {
  { comm.kept_plans() } -> std::same_as<kept_plans*>;
  { comm.without_kept_plans() } -> std::same_as<C>;
};

}  // namespace adasum
