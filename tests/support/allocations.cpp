// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "allocations.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

thread_local std::size_t count = 0;
std::atomic<std::ptrdiff_t> live = 0;
thread_local adasum::test::planned_failures failures;

void* allocate(std::size_t size, std::size_t alignment) {
  ++count;
  if (failures.in_a_row > 0 && failures.successes-- == 0) {
    failures.successes = 0;
    --failures.in_a_row;
    ++failures.failed;
    throw std::bad_alloc();
  }
  if (void* const memory = std::aligned_alloc(alignment, (size + alignment) / alignment * alignment)) {
    live.fetch_add(1, std::memory_order_relaxed);
    return memory;
  }
  throw std::bad_alloc();
}

void release(void* memory) {
  if (memory != nullptr) live.fetch_sub(1, std::memory_order_relaxed);
  std::free(memory);
}

}  // namespace

std::size_t adasum::test::allocations() { return count; }
std::ptrdiff_t adasum::test::live_allocations() { return live.load(std::memory_order_relaxed); }
adasum::test::planned_failures& adasum::test::failures_of_this_thread() { return failures; }

// The array forms call these.
void* operator new(std::size_t size) { return allocate(size, __STDCPP_DEFAULT_NEW_ALIGNMENT__); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
// As the library's own does; but AddressSanitizer has one of its own, for which free() is not the counterpart.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }
