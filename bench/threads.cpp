// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// threads_space on every processor that this process may use, against serial_space and against what as many threads can
// move. Names: threads/<what>/<by>/<N>. pair: in place, of two vectors of N floats; ceiling: one read of both and one
// triad, as in pair.cpp, on the same memory; tree: of eight vectors of N floats.
#include <benchmark/benchmark.h>

#include <adasum/adasum.hpp>
#include <adasum/exec/threads.hpp>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "ceiling.hpp"
#include "noise.hpp"

namespace {

constexpr std::size_t vectors = 8, longest = std::size_t{1} << 26, half_a_page = 2048;

/// One stretch of memory for all, touched only as far as needed: of two vectors of the longest length.
float* memory() {
  static const std::unique_ptr<void, decltype(&std::free)> arena(
      std::aligned_alloc(4096, 2 * longest * sizeof(float) + vectors * 4096), &std::free);
  if (!arena) throw std::bad_alloc();
  return static_cast<float*>(arena.get());
}

template <class Run>
void add(const std::string& name, std::size_t count, std::size_t length, Run run) {
  const auto body = [=](benchmark::State& state) {
    std::vector<std::span<float>> g;
    for (std::size_t i = 0; i < count; ++i) {
      g.emplace_back(memory() + i * (length + half_a_page / sizeof(float)), length);
      fill_with_noise(g.back(), static_cast<std::uint32_t>(i + 1));
    }
    run(state, g);
  };
  benchmark::RegisterBenchmark(("threads/" + name + "/" + std::to_string(length)).c_str(), body)
      ->Unit(benchmark::kMicrosecond)
      ->UseRealTime();
}

template <class Space>
void add_space(const std::string& name, const Space& space, std::size_t length) {
  add("pair/" + name, 2, length, [=](benchmark::State& state, const auto& g) {
    for (auto _ : state) adasum::adasum_pair(space, g[0], g[1], g[0]);
  });
  if (length * vectors <= 2 * longest)
    add("tree/" + name, vectors, length, [=](benchmark::State& state, const auto& g) {
      for (auto _ : state) adasum::adasum_tree(space, g, g[0]);
    });
}

/// The ceiling by so many threads at once, each of which has its part of the vectors.
void run_ceiling(benchmark::State& state, const std::vector<std::span<float>>& g, std::size_t threads) {
  const auto part = g[0].size() / threads / 128 * 128;
  std::atomic<std::size_t> round = 0, at_work = 0;
  std::atomic<bool> ends = false;
  const auto work = [&](std::size_t t) {
    benchmark::DoNotOptimize(ceiling::read(g[0].data() + t * part, g[1].data() + t * part, part));
    ceiling::triad(g[0].data() + t * part, g[1].data() + t * part, 0.5f, 0.5f, part);
  };
  std::vector<std::thread> others;
  for (std::size_t t = 1; t < threads; ++t)
    others.emplace_back([&, t] {
      for (std::size_t seen = 0;; ++seen) {
        while (round == seen) {
          if (ends) return;
          std::this_thread::yield();
        }
        work(t);
        --at_work;
      }
    });
  for (auto _ : state) {
    at_work = threads - 1;
    ++round;
    work(0);
    while (at_work != 0) std::this_thread::yield();
  }
  ends = true;
  for (auto& one : others) one.join();
}

}  // namespace

int main(int argc, char** argv) {
  const adasum::threads_space exec;
  for (const std::size_t length :
       {std::size_t{1} << 15, std::size_t{1} << 18, std::size_t{1} << 20, std::size_t{1} << 24, longest}) {
    add_space("serial_space", adasum::serial_space{}, length);
    add_space("threads_space", exec, length);
    add("ceiling/alone", 2, length, [](benchmark::State& state, const auto& g) { run_ceiling(state, g, 1); });
    add("ceiling/together", 2, length,
        [=](benchmark::State& state, const auto& g) { run_ceiling(state, g, exec.threads()); });
  }
  benchmark::AddCustomContext("threads", std::to_string(exec.threads()));
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::ClearRegisteredBenchmarks();
}
