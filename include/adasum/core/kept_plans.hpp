// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <array>
#include <concepts>
#include <cstddef>
#include <memory>
#include <utility>

namespace adasum {

/// What a communicator keeps of the single calls that were made on it, so that a call that was made before finds its plan:
/// the last `most` different ones, the oldest of which makes room for a new one. Used by one thread at a time, as the
/// communicator is.
class kept_plans {
 public:
  static constexpr std::size_t most = 16;

  /// One call: derived classes hold its arguments, and its plan. @tparam Call  the derived class
  class call {
   public:
    virtual ~call() = default;

   protected:
    template <class Call>
    explicit call(const Call*) : type_(&type_of<Call>) {}

   private:
    friend kept_plans;
    template <class>
    static constexpr char type_of = 0;  // its address tells types apart
    const void* type_;
  };

  /// The call of this type for which matches(call) holds; null if there is none.
  template <std::derived_from<call> Call, class Matches>
  Call* find(const Matches& matches) const {
    for (const auto& one : calls_)
      if (one && one->type_ == &call::type_of<Call>)
        if (auto* const found = static_cast<Call*>(one.get()); matches(std::as_const(*found))) return found;
    return nullptr;
  }
  void add(std::unique_ptr<call> one) noexcept {
    calls_[next_] = std::move(one);
    next_ = (next_ + 1) % most;
  }
  void clear() noexcept {
    for (auto& one : calls_) one.reset();
    next_ = 0;
  }

 private:
  std::array<std::unique_ptr<call>, most> calls_;
  std::size_t next_ = 0;
};

/// A refinement of communicators: kept_plans() is one object for all handles of a rank, or null; without_kept_plans() is a
/// handle that does not own it, for the plans in it (or none of the two would ever be destroyed).
template <class C>
concept plan_keeping_communicator = requires(const C& comm) {
  { comm.kept_plans() } -> std::same_as<kept_plans*>;
  { comm.without_kept_plans() } -> std::same_as<C>;
};

}  // namespace adasum
