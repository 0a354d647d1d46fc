// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pair kernel against the textbook loops and against what the machine can move, on the same memory. All work in place,
// a being the output; adasum_pair_to_third alone writes a vector of its own. Names: pair/<kernel>/<scalar>/<elements>.
// The vectors begin with a cache line; those of float_by_malloc 16 bytes later, as long std::vectors do. The ceiling is
// that of whole lines for both.

#include <benchmark/benchmark.h>

#include <adasum/adasum.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <string>

#include "ceiling.hpp"
#include "noise.hpp"
#include "textbook.hpp"

namespace {

constexpr std::size_t sizes[] = {1 << 10, 1 << 12, 1 << 15, 1 << 18, 1 << 20, 1 << 22, 1 << 24};
constexpr std::size_t largest_bytes = (1 << 24) * sizeof(double);
/// How far a and b are apart beyond that, so that they never compete for one set of the first cache.
constexpr std::size_t half_a_page = 2048;

/// One stretch of memory for every kernel, so that all of them meet the same pages. Touched only as far as needed.
std::byte* memory() {
  constexpr std::size_t bytes = 3 * (largest_bytes + 2 * half_a_page);
  static const std::unique_ptr<void, decltype(&std::free)> arena(std::aligned_alloc(4096, bytes), &std::free);
  if (!arena) throw std::bad_alloc();
  return static_cast<std::byte*>(arena.get());
}

/// Times run(a, b, length).
/// @param moved  vectors read or written by one run
/// @param shift  bytes from the beginning of a cache line to that of the vectors
template <class T, class Run>
void add(const std::string& name, std::size_t length, std::size_t moved, std::size_t shift, Run run) {
  const auto body = [=](benchmark::State& state) {
    const std::span a(reinterpret_cast<T*>(memory() + shift), length);
    const std::span b(reinterpret_cast<T*>(memory() + shift + largest_bytes + half_a_page), length);
    // Combined over and over, a goes towards b, so values stay as they are in size.
    fill_with_noise(a, 1);
    fill_with_noise(b, 2);
    for (auto _ : state) {
      run(a.data(), b.data(), length);
      benchmark::ClobberMemory();
    }
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(moved * length * sizeof(T)));
  };
  benchmark::RegisterBenchmark(name.c_str(), body);
}

/// measure, weigh, mix by the execution space alone: what adasum_pair does, without its checks.
template <class T>
void measure_and_mix(T* a, const T* b, std::size_t length) {
  const adasum::serial_space exec;
  const std::size_t offsets[] = {0, length};
  const auto window = adasum::whole(adasum::segments_view{offsets});
  const T* const vectors[] = {a, b};
  double gram[adasum::packed_size(2)];
  exec.measure<T>(window, vectors, gram);
  const auto weights = adasum::rules::adasum{}(adasum::pair_gram{gram[0], gram[1], gram[2]});
  const double both[] = {weights.a, weights.b};
  exec.mix<T>(window, vectors, both, a);
}

template <class T>
void adasum_pair(T* a, const T* b, std::size_t length) {
  const std::span out(a, length);
  adasum::adasum_pair(adasum::serial_space{}, out, std::span(b, length), out);
}

/// To a vector behind b, as far from it as b is from a.
template <class T>
void adasum_pair_to_third(T* a, T* b, std::size_t length) {
  const std::span out(b + (b - a), length);
  adasum::adasum_pair(adasum::serial_space{}, std::span(a, length), std::span(b, length), out);
}

/// In turns, as the kernels do: what is written by one run is still on its way to memory while the next one reads.
void read_and_triad(float* a, const float* b, std::size_t length) {
  benchmark::DoNotOptimize(ceiling::read(a, b, length));
  ceiling::triad(a, b, 0.5f, 0.5f, length);
}

template <class T>
void add_all(const std::string& scalar, std::size_t shift = 0) {
  for (const std::size_t length : sizes) {
    const auto name = [&](const char* kernel) {
      return "pair/" + std::string(kernel) + "/" + scalar + "/" + std::to_string(length);
    };
    add<T>(name("adasum_pair"), length, 5, shift, adasum_pair<T>);
    add<T>(name("adasum_pair_to_third"), length, 5, shift, adasum_pair_to_third<T>);
    add<T>(name("measure_and_mix"), length, 5, shift, measure_and_mix<T>);
    add<T>(name("textbook_strict"), length, 5, shift, textbook::pair<textbook::strict, T>);
    add<T>(name("textbook_fast_math"), length, 5, shift, textbook::pair<textbook::fast_math, T>);
    const auto same_bytes = length * sizeof(T) / sizeof(float);
    add<float>(name("ceiling"), same_bytes, 5, 0, read_and_triad);
  }
}

}  // namespace

int main(int argc, char** argv) {
  add_all<float>("float");
  add_all<float>("float_by_malloc", 16);
  add_all<double>("double");
#if ADASUM_HAS_FLOAT16
  add_all<_Float16>("half");
#endif
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
