// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <map>
#include <mutex>

/// Memory of the emulated device, and which memory of the host is page-locked.
namespace emulated_cuda {

/// Says what a program has done that no program may do, and ends it.
[[noreturn]] void fail(const char* what);

/// A range of addresses that can be read and written only while something runs.
class arena {
 public:
  arena();
  /// Filled with NaN; null if there is no room.
  void* allocate(std::size_t bytes);
  void release(void* memory);
  bool holds(const void* address) const;

  /// While one of these lives, the memory can be read and written.
  class running {
   public:
    explicit running(arena& memory) : memory_(memory) { memory_.run(+1); }
    running(const running&) = delete;
    running& operator=(const running&) = delete;
    ~running() { memory_.run(-1); }

   private:
    arena& memory_;
  };

 private:
  static constexpr std::size_t size = std::size_t{1} << 31, alignment = 256;

  void run(int change);

  std::byte* begin_;
  std::mutex mutex_, protection_;
  std::map<std::byte*, std::size_t> free_, used_;
  int runs_ = 0;
};

arena& device_memory();

/// Page-locked memory of the host; null if there is none.
void* allocate_pinned(std::size_t bytes);
void release_pinned(void* memory);
bool is_pinned(const void* address);
/// Ordinary memory of the host: neither the device's nor page-locked.
bool is_pageable(const void* address);

}  // namespace emulated_cuda
