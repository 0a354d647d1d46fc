// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the model's ranks call where nothing is explored and all is recorded: the functions in ranks.hpp, and those that
// the compiler calls before each access to memory in code that is compiled with -fsanitize=thread.
#include <adasum/testing/simulated_communicator.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>

#include "ranks.hpp"
#include "record.hpp"
#include "recorded_reductions.hpp"
#include "recording.hpp"

namespace adasum::test::model {

namespace {

thread_local std::optional<simulated_communicator::memory> memory_of_all;
thread_local const char* problem = nullptr;

void follow(const void* at, std::size_t bytes, bool writes, const void*) {
  if (recording::current) recording::current->access(at, bytes, writes);
}

}  // namespace

std::byte* shared_memory() { return memory_of_all->of(0); }
void checkpoint(std::uint64_t) {}
void in_loop() { memory_of_all->progress(); }
void require(bool good, const char* what) {
  if (!good) problem = what;
}
void note_outcome(std::size_t, std::size_t, bool) {}
void let_time_fly(bool does) { recording::current->is_impatient = does; }

recorded record_model(const scenario& one) {
  return record(one, sizeof(double), [&](const simulated_communicator& comm) {
    memory_of_all = comm.share(shared_bytes);
    run_rank(one, static_cast<std::size_t>(comm.rank()));
    memory_of_all.reset();
    if (problem) throw std::logic_error(problem);
  });
}

}  // namespace adasum::test::model

#include "followed_accesses.hpp"

extern "C" {
std::uint64_t __tsan_atomic64_load(const volatile std::uint64_t* at, int) {
  return __atomic_load_n(at, __ATOMIC_SEQ_CST);
}
void __tsan_atomic64_store(volatile std::uint64_t* at, std::uint64_t value, int) {
  __atomic_store_n(at, value, __ATOMIC_SEQ_CST);
}
}
