// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pairs of vectors, in place and into a third one, and in short segments: see constants.py.

#include <adasum/exec/serial.hpp>
#include <adasum/pair.hpp>

#include <algorithm>
#include <cstddef>
#include <initializer_list>

#include "../even_segments.hpp"
#include "timing.hpp"

int main() {
  using namespace constants_bench;
  const adasum::serial_space exec;
  for (const std::size_t length : {256u, 1u << 10, 3u << 10, 12u << 10, 48u << 10, 96u << 10, 192u << 10, 400u << 10,
                                   1u << 20, 3u << 20, 8u << 20}) {
    const auto a = noise(length, 1), b = noise(length, 2);
    auto out = noise(length, 3), sum = a;
    print("third", length, nanoseconds_of([&] { adasum::adasum_pair(exec, a, b, out); }));
    print("in-place", length, nanoseconds_of([&] {
            std::copy(a.begin(), a.end(), sum.begin());  // or its numbers would grow
            adasum::adasum_pair(exec, sum, b, sum);
          }));
    for (const std::size_t each : {64u, 4096u}) {
      if (each * 4 > length) continue;
      const auto segments = even_segments(length, length / each);
      print(each == 64 ? "segments-of-64" : "segments-of-4096", length,
            nanoseconds_of([&] { adasum::adasum_pair(exec, a, b, out, segments); }));
    }
  }
}
