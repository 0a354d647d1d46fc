// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "instrumentation.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

#include "explorer.hpp"

/// What the compiler calls before each access to memory in code that is compiled with -fsanitize=thread, in place of
/// ThreadSanitizer's own functions (LLVM: compiler-rt/lib/tsan/rtl/tsan_interface.h). So the library is checked as it is: its
/// atomics are std::atomic.
namespace adasum::test::model {

bool is_ranks_code = false;

namespace {

/// Turns a rank's code into the explorer's for a while.
class explorers_code {
 public:
  explorers_code() : was_(std::exchange(is_ranks_code, false)) {}
  explorers_code(const explorers_code&) = delete;
  explorers_code& operator=(const explorers_code&) = delete;
  ~explorers_code() { is_ranks_code = was_; }

 private:
  bool was_;
};

alignas(64) std::byte shared[shared_bytes];

bool is_followed(const volatile void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address), begin = reinterpret_cast<std::uintptr_t>(shared);
  return is_ranks_code && at >= begin && at < begin + shared_bytes;
}
std::size_t word_at(const volatile void* address) {
  return (reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(shared)) / 8;
}
void follow(const void* address, std::size_t bytes, bool writes, void* site) {
  if (bytes == 0 || !is_followed(address)) return;
  const explorers_code now;
  const auto last = word_at(static_cast<const std::byte*>(address) + bytes - 1);
  for (auto word = word_at(address); word <= last; ++word)
    explorer::current->access(reinterpret_cast<std::uintptr_t>(site), word, writes);
}
void follow_copy(const void* to, const void* from, std::size_t bytes, void* site) {
  follow(from, bytes, false, site);
  follow(to, bytes, true, site);
}
std::uint64_t load(const volatile std::uint64_t* address, int order, void* site) {
  if (!is_followed(address)) return __atomic_load_n(address, __ATOMIC_ACQUIRE);
  const explorers_code now;
  return explorer::current->load(reinterpret_cast<std::uintptr_t>(site), word_at(address),
                                 static_cast<std::memory_order>(order));
}
void store(volatile std::uint64_t* address, std::uint64_t value, int order, void* site) {
  if (!is_followed(address)) return __atomic_store_n(address, value, __ATOMIC_RELEASE);
  const explorers_code now;
  explorer::current->store(reinterpret_cast<std::uintptr_t>(site), word_at(address), value,
                           static_cast<std::memory_order>(order));
}

alignas(64) std::byte allocations[std::size_t{1} << 20];
std::size_t allocated = 0;

void* allocate(std::size_t bytes) {
  if (!is_ranks_code) return std::malloc(bytes);
  allocated = (allocated + 63) / 64 * 64;
  if (bytes > sizeof allocations - allocated) std::abort();
  return allocations + std::exchange(allocated, allocated + bytes);
}
void release(void* address) {
  const auto* const at = static_cast<std::byte*>(address);
  if (at < allocations || at >= allocations + sizeof allocations) std::free(address);
}

}  // namespace

void forget_allocations() { allocated = 0; }

std::byte* shared_memory() { return shared; }
void checkpoint(std::uint64_t label) {
  const explorers_code now;
  explorer::current->checkpoint(label);
}
void in_loop() {
  const explorers_code now;
  explorer::current->in_loop();
}
void require(bool good, const char* what) {
  const explorers_code now;
  explorer::current->require(good, what);
}
void let_time_fly(bool does) {
  const explorers_code now;
  explorer::current->let_time_fly(does);
}

}  // namespace adasum::test::model

// A path ends in the middle of what ranks do: what they have allocated must not need to be freed.
void* operator new(std::size_t bytes) {
  if (void* const made = adasum::test::model::allocate(bytes)) return made;
  throw std::bad_alloc();
}
void operator delete(void* address) noexcept { adasum::test::model::release(address); }
void operator delete(void* address, std::size_t) noexcept { adasum::test::model::release(address); }

#include "followed_accesses.hpp"

extern "C" {
std::uint64_t __tsan_atomic64_load(const volatile std::uint64_t* at, int order) {
  return adasum::test::model::load(at, order, ADASUM_SITE);
}
void __tsan_atomic64_store(volatile std::uint64_t* at, std::uint64_t value, int order) {
  adasum::test::model::store(at, value, order, ADASUM_SITE);
}

// Copies are calls, which are not instrumented.
void* __real_memcpy(void* to, const void* from, std::size_t bytes);
void* __real_memmove(void* to, const void* from, std::size_t bytes);
void* __wrap_memcpy(void* to, const void* from, std::size_t bytes) {
  adasum::test::model::follow_copy(to, from, bytes, ADASUM_SITE);
  return __real_memcpy(to, from, bytes);
}
void* __wrap_memmove(void* to, const void* from, std::size_t bytes) {
  adasum::test::model::follow_copy(to, from, bytes, ADASUM_SITE);
  return __real_memmove(to, from, bytes);
}
void* __tsan_memcpy(void* to, const void* from, std::size_t bytes) {
  adasum::test::model::follow_copy(to, from, bytes, ADASUM_SITE);
  return __real_memcpy(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, std::size_t bytes) {
  adasum::test::model::follow_copy(to, from, bytes, ADASUM_SITE);
  return __real_memmove(to, from, bytes);
}

// Ranks wait in turns, and time passes as the explorer says.
int __wrap_sched_yield() { return 0; }
std::chrono::steady_clock::time_point __real__ZNSt6chrono3_V212steady_clock3nowEv();
std::chrono::steady_clock::time_point __wrap__ZNSt6chrono3_V212steady_clock3nowEv() {
  if (!adasum::test::model::is_ranks_code) return __real__ZNSt6chrono3_V212steady_clock3nowEv();
  const adasum::test::model::explorers_code now;
  return std::chrono::steady_clock::time_point(std::chrono::seconds(adasum::test::model::explorer::current->seconds()));
}
}
