// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//     adasum_scale_kernel_speeds
//
// What the arithmetic of a reduction costs on this processor, one line for each figure, for the simulated runs to
// charge:
//
//     measure VECTORS BYTES NANOSECONDS   for each element of a slice of VECTORS float vectors of BYTES together
//     mix     VECTORS BYTES NANOSECONDS   likewise
//     weigh   VECTORS 0     NANOSECONDS   one Gram matrix of VECTORS vectors to its weights
//
// A sum of two vectors is a mix of two. Each figure is the least of several passes over all of them: what else the
// machine does meanwhile is not the kernel's.

#include <adasum/adasum.hpp>
#include <adasum/detail/numerics/weigh.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "../noise.hpp"

namespace {

constexpr std::size_t vector_counts[] = {1, 2, 4, 8, 16, 32, 64, 128};
constexpr std::size_t byte_counts[] = {std::size_t{1} << 15, std::size_t{1} << 18, std::size_t{1} << 21,
                                       std::size_t{1} << 25};
constexpr int passes = 6;
constexpr double batch_seconds = 4e-3;

using figure = std::tuple<std::string_view, std::size_t, std::size_t>;  // kernel, vectors, bytes
std::map<figure, double> least;

void note(std::string_view kernel, std::size_t vectors, std::size_t bytes, double nanoseconds) {
  auto& best = least.try_emplace({kernel, vectors, bytes}, nanoseconds).first->second;
  best = std::min(best, nanoseconds);
}

template <class Work>
double nanoseconds(Work&& work) {
  using clock = std::chrono::steady_clock;
  work();
  int runs = 0;
  const auto start = clock::now();
  std::chrono::duration<double, std::nano> spent{};
  do {
    work();
    ++runs;
    spent = clock::now() - start;
  } while (spent.count() < batch_seconds * 1e9);
  return spent.count() / runs;
}

/// Keeps the compiler from leaving out what nobody reads.
void keep(const void* memory) { asm volatile("" : : "g"(memory) : "memory"); }

void kernels(std::size_t count, std::size_t bytes) {
  const adasum::serial_space exec;
  const std::size_t length = bytes / sizeof(float) / count;
  std::vector<float> elements(length * count);
  fill_with_noise(std::span(elements), 1);
  std::vector<const float*> vectors(count);
  for (std::size_t i = 0; i < count; ++i) vectors[i] = elements.data() + i * length;
  const adasum::segments whole = adasum::segments::whole(length);
  const adasum::slice window{whole, {0, length}, 0};
  std::vector<double> gram(adasum::packed_size(count)), weights(count, 1.0 / static_cast<double>(count));
  const auto per_element = [&](double total) { return total / static_cast<double>(length); };
  note("measure", count, bytes, per_element(nanoseconds([&] {
         exec.measure(window, std::span<const float* const>(vectors), gram.data());
         keep(gram.data());
       })));
  note("mix", count, bytes, per_element(nanoseconds([&] {
         exec.mix(window, std::span<const float* const>(vectors), weights.data(), elements.data());
         keep(elements.data());
       })));
}

void weighing(std::size_t count) {
  adasum::rules::adasum rule;
  std::vector<double> gram(adasum::packed_size(count), 0.1), weights(count);
  for (std::size_t i = 0; i < count; ++i) gram[adasum::packed_index(i, i)] = 1;
  const std::vector<std::size_t> leaves(count, 1);
  adasum::detail::weigh_scratch scratch(count);
  note("weigh", count, 0, nanoseconds([&] {
         adasum::detail::weigh(rule, adasum::gram_view{gram.data(), count}, std::span(leaves), std::span(weights), 0,
                               scratch);
         keep(weights.data());
       }));
}

}  // namespace

int main() {
  for (int pass = 0; pass < passes; ++pass)
    for (const auto count : vector_counts) {
      for (const auto bytes : byte_counts) kernels(count, bytes);
      weighing(count);
    }
  for (const auto& [what, nanoseconds] : least) {
    const auto& [kernel, vectors, bytes] = what;
    std::printf("%-8s %4zu %9zu %.5g\n", std::string(kernel).c_str(), vectors, bytes, nanoseconds);
  }
}
