// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// 8 to 64 gradients of 4 Mi floats: adasum_tree against calls of adasum_pair along the same tree, both in place. Names:
// tree/<kernel>/<gradients>/<segments>.

#include <benchmark/benchmark.h>

#include <adasum/adasum.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "even_segments.hpp"
#include "noise.hpp"

namespace {

constexpr std::size_t length = std::size_t{1} << 22;
using gradient_set = std::span<std::vector<float>>;

void tree(gradient_set g, const adasum::segments& segments) {
  adasum::adasum_tree(adasum::serial_space{}, g, g[0], segments);
}

void pairs(gradient_set g, const adasum::segments& segments) {
  adasum::for_each_merge(g.size(), [&](std::size_t first, std::size_t middle, std::size_t) {
    adasum::adasum_pair(adasum::serial_space{}, g[first], g[middle], g[first], segments);
  });
}

/// @param moved  vectors read or written by one run
void add(const char* kernel, std::size_t count, std::size_t parts, std::size_t moved,
         void (*run)(gradient_set, const adasum::segments&)) {
  const auto body = [=](benchmark::State& state) {
    static std::vector<std::vector<float>> gradients;
    if (gradients.size() < count) gradients.resize(count, std::vector<float>(length));
    for (std::size_t i = 0; i < count; ++i) {
      fill_with_noise(std::span(gradients[i]), static_cast<std::uint32_t>(i));
    }
    const auto segments = even_segments(length, parts);
    for (auto _ : state) {
      run(gradient_set(gradients).first(count), segments);
      benchmark::ClobberMemory();
    }
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(moved * length * sizeof(float)));
  };
  const auto name = "tree/" + std::string(kernel) + "/" + std::to_string(count) + "/" + std::to_string(parts);
  benchmark::RegisterBenchmark(name.c_str(), body)->Unit(benchmark::kMillisecond);
}

}  // namespace

int main(int argc, char** argv) {
  for (const auto& [count, parts] : {std::pair<std::size_t, std::size_t>{8, 1},
                                     {8, 161},
                                     {8, 1000},
                                     {16, 1},
                                     {16, 161},
                                     {32, 1},
                                     {32, 161},
                                     {64, 1},
                                     {64, 161}}) {
    add("adasum_tree", count, parts, 2 * count + 1, tree);
    add("pairs", count, parts, 5 * (count - 1), pairs);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
