// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

#include "../noise.hpp"

/// What the programs here print, and constants.py reads: a line "case nanoseconds" for each case.
namespace constants_bench {

/// The median of three batches of a millisecond or more, for one call. Programs are short, and run often: where their memory
/// happens to lie changes their times by more than anything that happens while they run.
inline double nanoseconds_of(const auto& call) {
  using clock = std::chrono::steady_clock;
  const auto time = [&](std::size_t calls) {
    const auto begin = clock::now();
    for (std::size_t i = 0; i < calls; ++i) call();
    return std::chrono::duration<double, std::nano>(clock::now() - begin).count();
  };
  std::size_t calls = 1;
  while (time(calls) < 1e6) calls *= 2;
  std::array<double, 3> batches{};
  for (auto& one : batches) one = time(calls) / static_cast<double>(calls);
  std::ranges::sort(batches);
  return batches[batches.size() / 2];
}

inline void print(const char* what, std::size_t length, double nanoseconds) {
  std::printf("%s %zu %.1f\n", what, length, nanoseconds);
}

inline std::vector<float> noise(std::size_t length, std::uint32_t seed) {
  std::vector<float> all(length);
  fill_with_noise(std::span(all), seed);
  return all;
}

}  // namespace constants_bench
