// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What allocates nothing: adasum_pair, and the serial kernels.
#include <adasum/exec/serial.hpp>
#include <adasum/pair.hpp>

#include <cstdlib>
#include <new>
#include <vector>

#include "support/doctest_scalars.hpp"
#include "support/random_gradients.hpp"

using namespace adasum;
using namespace adasum::test;

namespace {
std::size_t allocations = 0;
}

// Not inlined, so that the compiler does not see malloc on one side and operator delete on the other.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* const memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

TEST_CASE("allocations are counted at all") {
  const auto before = allocations;
  ::operator delete(::operator new(3));
  CHECK(allocations > before);
}

TEST_CASE_TEMPLATE("adasum_pair allocates nothing", T, ADASUM_TEST_FORMATS) {
  for (const std::size_t length : {std::size_t{0}, std::size_t{3}, std::size_t{5000}, std::size_t{100000}}) {
    CAPTURE(length);
    const serial_space exec;
    auto g = random_gradients<T>(2, length, 1);
    std::vector<T> out(length);
    std::vector<segments> cuts{segments{length}, segments(random_segments(length, 1, 1)),
                               segments(random_segments(length, 50, 2))};
    const auto before = allocations;
    adasum_pair(exec, g[0], g[1], out);
    for (const auto& cut : cuts) adasum_pair(exec, g[0], g[1], out, cut);
    adasum_pair(exec, g[0], g[1], g[0]);
    const auto after = allocations;
    CHECK(after == before);
  }
}

TEST_CASE_TEMPLATE("nor do the kernels, for up to 64 vectors", T, ADASUM_TEST_FORMATS) {
  const serial_space exec;
  const std::size_t length = 5000;
  const segments cut{4000, 0, 1000};
  const auto g = random_gradients<T>(64, length, 2);
  std::vector<T> out(length);
  for (const std::size_t n : {1, 2, 3, 9, 33, 64}) {
    CAPTURE(n);
    std::vector<const T*> vectors;
    for (std::size_t i = 0; i < n; ++i) vectors.push_back(g[i].data());
    std::vector<double> gram(cut.size() * packed_size(n)), weights(cut.size() * n, 0.5);
    const auto before = allocations;
    exec.measure(whole(cut), std::span<const T* const>(vectors), gram.data());
    exec.mix(whole(cut), std::span<const T* const>(vectors), weights.data(), out.data());
    const auto after = allocations;
    CHECK(after == before);
  }
}

TEST_CASE("neither do non-finite gradients, nor float ones of any size") {
  const serial_space exec;
  auto g = random_gradients<float>(2, 1000, 1);
  for (float& value : g[0]) value *= 1e30f;
  g[1][7] = quiet_nan<float>();
  std::vector<float> out(1000);
  const segments cut{500, 500};
  const auto before = allocations;
  adasum_pair(exec, g[0], g[1], out, cut);
  const auto after = allocations;
  CHECK(after == before);
}
