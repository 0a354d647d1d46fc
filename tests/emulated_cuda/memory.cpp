// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "memory.hpp"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

namespace emulated_cuda {
namespace {

std::mutex pinned_mutex;
std::map<const std::byte*, std::size_t> pinned;

}  // namespace

void fail(const char* what) {
  std::fprintf(stderr, "emulated CUDA: %s\n", what);
  std::abort();
}

arena::arena() {
  begin_ = static_cast<std::byte*>(mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (begin_ == MAP_FAILED) fail("no address space for memory of the device");
  free_[begin_] = size;
  ASAN_POISON_MEMORY_REGION(begin_, size);
}

void* arena::allocate(std::size_t bytes) {
  const auto rounded = (bytes + 2 * alignment - 1) / alignment * alignment;  // with a gap behind
  const running here(*this);
  const std::scoped_lock lock(mutex_);
  for (auto hole = free_.begin(); hole != free_.end(); ++hole) {
    if (hole->second < rounded) continue;
    auto* const at = hole->first;
    if (hole->second > rounded) free_[at + rounded] = hole->second - rounded;
    free_.erase(at);
    used_[at] = rounded;
    ASAN_UNPOISON_MEMORY_REGION(at, bytes);
    std::memset(at, 0xff, bytes);
    return at;
  }
  return nullptr;
}

void arena::release(void* memory) {
  const std::scoped_lock lock(mutex_);
  const auto found = used_.find(static_cast<std::byte*>(memory));
  if (found == used_.end()) fail("memory is freed that was not allocated");
  ASAN_POISON_MEMORY_REGION(found->first, found->second);
  auto [hole, added] = free_.emplace(*found);
  used_.erase(found);
  if (const auto next = std::next(hole); next != free_.end() && hole->first + hole->second == next->first) {
    hole->second += next->second;
    free_.erase(next);
  }
  if (hole != free_.begin()) {
    const auto before = std::prev(hole);
    if (before->first + before->second == hole->first) {
      before->second += hole->second;
      free_.erase(hole);
    }
  }
}

bool arena::holds(const void* address) const {
  return address >= static_cast<const void*>(begin_) && address < static_cast<const void*>(begin_ + size);
}

void arena::run(int change) {
  const std::scoped_lock lock(protection_);
  const int before = runs_;
  runs_ += change;
  if (before == 0) mprotect(begin_, size, PROT_READ | PROT_WRITE);
  if (runs_ == 0) mprotect(begin_, size, PROT_NONE);
}

arena& device_memory() {
  static arena memory;
  return memory;
}

void* allocate_pinned(std::size_t bytes) {
  void* const made = std::malloc(bytes);
  const std::scoped_lock lock(pinned_mutex);
  pinned[static_cast<std::byte*>(made)] = bytes;
  return made;
}

void release_pinned(void* memory) {
  const std::scoped_lock lock(pinned_mutex);
  pinned.erase(static_cast<std::byte*>(memory));
  std::free(memory);
}

bool is_pinned(const void* address) {
  const std::scoped_lock lock(pinned_mutex);
  const auto at = static_cast<const std::byte*>(address);
  const auto next = pinned.upper_bound(at);
  return next != pinned.begin() && at < std::prev(next)->first + std::prev(next)->second;
}
bool is_pageable(const void* address) { return !device_memory().holds(address) && !is_pinned(address); }

}  // namespace emulated_cuda
