// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Eight gradients of 4 Mi floats: adasum_tree against seven calls of adasum_pair along the same tree, both in place.
// Names: tree/<kernel>/<segments>.

#include <benchmark/benchmark.h>

#include <adasum/adasum.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "even_segments.hpp"
#include "noise.hpp"

namespace {

constexpr std::size_t count = 8, length = std::size_t{1} << 22;
using gradient_set = std::array<std::vector<float>, count>;

void tree(gradient_set& g, const adasum::segments& segments) {
  adasum::adasum_tree(adasum::serial_space{}, g, g[0], segments);
}

void pairs(gradient_set& g, const adasum::segments& segments) {
  adasum::for_each_merge(count, [&](std::size_t first, std::size_t middle, std::size_t) {
    adasum::adasum_pair(adasum::serial_space{}, g[first], g[middle], g[first], segments);
  });
}

/// @param moved  vectors read or written by one run
void add(const char* kernel, std::size_t parts, std::size_t moved,
         void (*run)(gradient_set&, const adasum::segments&)) {
  const auto body = [=](benchmark::State& state) {
    static gradient_set gradients;
    for (std::size_t i = 0; i < count; ++i) {
      gradients[i].resize(length);
      fill_with_noise(std::span(gradients[i]), static_cast<std::uint32_t>(i));
    }
    const auto segments = even_segments(length, parts);
    for (auto _ : state) {
      run(gradients, segments);
      benchmark::ClobberMemory();
    }
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(moved * length * sizeof(float)));
  };
  const auto name = "tree/" + std::string(kernel) + "/" + std::to_string(parts);
  benchmark::RegisterBenchmark(name.c_str(), body)->Unit(benchmark::kMillisecond);
}

}  // namespace

int main(int argc, char** argv) {
  for (const std::size_t parts : {1, 161, 1000}) {
    add("adasum_tree", parts, 2 * count + 1, tree);
    add("seven_pairs", parts, 5 * (count - 1), pairs);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
