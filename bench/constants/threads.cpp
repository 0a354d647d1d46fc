// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pairs by all processors: see constants.py.

#include <adasum/exec/threads.hpp>
#include <adasum/pair.hpp>

#include <cstddef>
#include <initializer_list>

#include "timing.hpp"

int main() {
  using namespace constants_bench;
  const adasum::threads_space exec;
  for (const std::size_t length : {4u << 10, 12u << 10, 32u << 10, 96u << 10, 256u << 10, 1u << 20, 4u << 20}) {
    const auto a = noise(length, 1), b = noise(length, 2);
    auto out = noise(length, 3);
    print("third", length, nanoseconds_of([&] { adasum::adasum_pair(exec, a, b, out); }));
  }
}
