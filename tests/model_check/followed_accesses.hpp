// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

// The functions that the compiler calls before each ordinary access to memory in code that is compiled with -fsanitize=thread.
// To be included once in a program, below adasum::test::model::follow(address, bytes, writes, site), which they call.

#define ADASUM_SITE __builtin_extract_return_addr(__builtin_return_address(0))
#define ADASUM_FOLLOW(bytes)                                                                                  \
  void __tsan_read##bytes(void* at) { adasum::test::model::follow(at, bytes, false, ADASUM_SITE); }           \
  void __tsan_write##bytes(void* at) { adasum::test::model::follow(at, bytes, true, ADASUM_SITE); }           \
  void __tsan_unaligned_read##bytes(void* at) { adasum::test::model::follow(at, bytes, false, ADASUM_SITE); } \
  void __tsan_unaligned_write##bytes(void* at) { adasum::test::model::follow(at, bytes, true, ADASUM_SITE); }

extern "C" {
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
ADASUM_FOLLOW(1)
ADASUM_FOLLOW(2)
ADASUM_FOLLOW(4)
ADASUM_FOLLOW(8)
ADASUM_FOLLOW(16)
void __tsan_read_range(void* at, std::size_t bytes) { adasum::test::model::follow(at, bytes, false, ADASUM_SITE); }
void __tsan_write_range(void* at, std::size_t bytes) { adasum::test::model::follow(at, bytes, true, ADASUM_SITE); }
}
