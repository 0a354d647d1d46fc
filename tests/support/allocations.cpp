// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "allocations.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace {

thread_local std::size_t count = 0;

void* counted(void* memory) {
  ++count;
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

std::size_t adasum::test::allocations() { return count; }

// The array forms call these.
void* operator new(std::size_t size) { return counted(std::malloc(std::max<std::size_t>(size, 1))); }
void* operator new(std::size_t size, std::align_val_t align) {
  const auto step = static_cast<std::size_t>(align);
  return counted(std::aligned_alloc(step, (std::max<std::size_t>(size, 1) + step - 1) / step * step));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
