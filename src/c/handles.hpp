// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <adasum/core/error.hpp>

namespace adasum::c {

/// Objects that C knows by numbers. A number is never given twice (within 2³² uses of one place), so that one that was freed is
/// found out. Used by any thread; who has found an object keeps it while it works with it.
template <class Object>
class handle_table {
 public:
  /// @param kind  of object, for messages: "plan"
  explicit handle_table(const char* kind) : kind_(kind) {}

  /// @return its number, which is not 0
  std::uint64_t add(std::shared_ptr<Object> object) {
    const std::scoped_lock lock(mutex_);
    if (free_.empty()) {
      free_.reserve(places_.size() + 1);  // so that remove() need not allocate
      places_.emplace_back();
      free_.push_back(places_.size() - 1);
    }
    const auto place = free_.back();
    free_.pop_back();
    places_[place].object = std::move(object);
    return number_of(place);
  }
  /// @throws bad_input  no object has this number
  std::shared_ptr<Object> find(std::uint64_t number, const char* call) const {
    const std::scoped_lock lock(mutex_);
    return places_[place_of(number, call)].object;
  }
  /// @throws bad_input  as find. @return the object, whose owner is the caller now
  std::shared_ptr<Object> remove(std::uint64_t number, const char* call) {
    const std::scoped_lock lock(mutex_);
    const auto place = place_of(number, call);
    ++places_[place].uses;
    free_.push_back(place);
    return std::move(places_[place].object);
  }

 private:
  struct entry {
    std::shared_ptr<Object> object;
    std::uint32_t uses = 1;
  };

  std::uint64_t number_of(std::size_t place) const { return std::uint64_t{places_[place].uses} << 32 | place; }
  std::size_t place_of(std::uint64_t number, const char* call) const {
    if (number == 0) throw bad_input({call, ": the ", kind_, " is ADASUM_NULL: it was never made, or has been freed"});
    const auto place = static_cast<std::size_t>(number & 0xffffffffu);
    if (place >= places_.size() || !places_[place].object || number_of(place) != number)
      throw bad_input({call, ": there is no such ", kind_, ": it has been freed, or was never made"});
    return place;
  }

  const char* kind_;
  mutable std::mutex mutex_;
  std::vector<entry> places_;
  std::vector<std::size_t> free_;
};

}  // namespace adasum::c
