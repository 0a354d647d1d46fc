// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "fibers.hpp"

#include <ucontext.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

namespace emulated_cuda::fibers {
namespace {

constexpr std::size_t stack_bytes = std::size_t{1} << 18;

struct fiber {
  ucontext_t context;
  std::unique_ptr<std::byte[]> stack;
  place waits = place::nobody;
  bool ended = false;
  void* shadow = nullptr;  // the sanitizer's
};

/// What one thread of the operating system runs.
struct scheduler {
  ucontext_t context;
  std::vector<fiber> all;
  fiber* current = nullptr;
  const std::function<void()>* thread = nullptr;
  void* shadow = nullptr;
  const void* stack = nullptr;
  std::size_t stack_size = 0;

  void resume(fiber& next) {
    current = &next;
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(&shadow, next.stack.get(), stack_bytes);
#endif
    swapcontext(&context, &next.context);
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(shadow, nullptr, nullptr);
#endif
  }

  void yield() {
    fiber& me = *current;
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(me.ended ? nullptr : &me.shadow, stack, stack_size);
#endif
    swapcontext(&me.context, &context);
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(me.shadow, &stack, &stack_size);
#endif
  }
};

thread_local scheduler mine;

void begin() {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(nullptr, &mine.stack, &mine.stack_size);
#endif
  (*mine.thread)();
  mine.current->ended = true;
  mine.yield();
}

}  // namespace

void run(unsigned count, const std::function<void(unsigned)>& enter, const std::function<void()>& thread,
         const std::function<void(place)>& reached) {
  mine.thread = &thread;
  if (mine.all.size() < count) mine.all.resize(count);
  for (unsigned t = 0; t < count; ++t) {
    auto& one = mine.all[t];
    if (!one.stack) one.stack = std::make_unique_for_overwrite<std::byte[]>(stack_bytes);
    one.waits = place::nobody;
    one.ended = false;
    getcontext(&one.context);
    one.context.uc_stack.ss_sp = one.stack.get();
    one.context.uc_stack.ss_size = stack_bytes;
    one.context.uc_link = nullptr;
    makecontext(&one.context, begin, 0);
  }
  // First to last and last to first by turns: whoever forgot a barrier meets a thread that is ahead.
  for (unsigned turn = 0;; ++turn) {
    for (unsigned i = 0; i < count; ++i) {
      const unsigned t = turn % 2 == 0 ? i : count - 1 - i;
      enter(t);
      mine.resume(mine.all[t]);
    }
    const bool ended = mine.all[0].ended;
    const auto where = mine.all[0].waits;
    for (unsigned t = 0; t < count; ++t)
      if (mine.all[t].ended != ended || (!ended && mine.all[t].waits != where)) {
        std::fprintf(stderr, "emulated CUDA: the threads of a block wait for different things\n");
        std::abort();
      }
    if (ended) return;
    reached(where);
  }
}

void wait(place where) {
  mine.current->waits = where;
  mine.yield();
}

}  // namespace emulated_cuda::fibers
