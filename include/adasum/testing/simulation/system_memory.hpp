// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <vector>

namespace adasum::detail::simulated {

/// Memory of the system, not by operator new: a test may count that, or let it fail, and means the library's calls.
template <class T>
struct system_allocator {
  using value_type = T;

  system_allocator() = default;
  template <class U>
  system_allocator(const system_allocator<U>&) noexcept {}

  T* allocate(std::size_t count) {
    constexpr std::size_t alignment = std::max(alignof(T), alignof(std::max_align_t));
    if (count > std::numeric_limits<std::size_t>::max() / 2 / sizeof(T)) throw std::bad_array_new_length();
    if (void* const memory = std::aligned_alloc(alignment, (count * sizeof(T) / alignment + 1) * alignment))
      return static_cast<T*>(memory);
    throw std::bad_alloc();
  }
  void deallocate(T* memory, std::size_t) noexcept { std::free(memory); }  // NOLINT(*-no-malloc): see above

  friend bool operator==(const system_allocator&, const system_allocator&) { return true; }
};

template <class T>
using list = std::vector<T, system_allocator<T>>;

/// Zeroed memory for each of some ranks, on cache lines of its own, and behind each a line that nobody may write to.
class guarded_block {
 public:
  guarded_block(std::size_t ranks, std::size_t bytes)
      : ranks_(ranks), each_(bytes / sizeof(line) + 1), lines_(ranks * (each_ + 1)) {
    for (std::size_t r = 0; r < ranks_; ++r) guard(r).fill();
  }

  std::byte* of(std::size_t rank) { return lines_[rank * (each_ + 1)].bytes; }
  /// Of each rank.
  std::size_t bytes() const { return each_ * sizeof(line); }
  /// Whether only what belongs to ranks was written to.
  bool is_whole() const {
    for (std::size_t r = 0; r < ranks_; ++r)
      if (!lines_[r * (each_ + 1) + each_].is_filled()) return false;
    return true;
  }

 private:
  struct alignas(64) line {
    void fill() { std::fill(std::begin(bytes), std::end(bytes), mark); }
    bool is_filled() const {
      return std::all_of(std::begin(bytes), std::end(bytes), [](std::byte one) { return one == mark; });
    }
    static constexpr std::byte mark{0xA5};
    std::byte bytes[64];
  };
  line& guard(std::size_t rank) { return lines_[rank * (each_ + 1) + each_]; }

  std::size_t ranks_, each_;
  list<line> lines_;
};

/// What the ranks of a node have made together, by their share() number `number`.
struct shared_block {
  std::size_t number;
  int node;
  std::shared_ptr<guarded_block> memory;
};

}  // namespace adasum::detail::simulated
