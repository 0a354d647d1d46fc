// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What allocates nothing: adasum_pair, and the serial kernels.
#include <adasum/exec/serial.hpp>
#include <adasum/pair.hpp>

#include <new>
#include <span>
#include <vector>

#include "support/allocations.hpp"
#include "support/doctest_scalars.hpp"
#include "support/random_gradients.hpp"

namespace test_of_allocation {

using namespace adasum;
using namespace adasum::test;

TEST_CASE("allocations are counted at all") {
  const auto before = allocations();
  ::operator delete(::operator new(3));
  CHECK(allocations() > before);
}

TEST_CASE_TEMPLATE("adasum_pair allocates nothing", T, ADASUM_TEST_FORMATS) {
  for (const std::size_t length : {std::size_t{0}, std::size_t{3}, std::size_t{5000}, std::size_t{100000}}) {
    CAPTURE(length);
    const serial_space exec;
    auto g = random_gradients<T>(2, length, 1);
    std::vector<T> out(length);
    std::vector<segments> cuts{segments{length}, segments(random_segments(length, 1, 1)),
                               segments(random_segments(length, 50, 2))};
    const auto before = allocations();
    adasum_pair(exec, g[0], g[1], out);
    for (const auto& cut : cuts) adasum_pair(exec, g[0], g[1], out, cut);
    adasum_pair(exec, g[0], g[1], g[0]);
    const auto after = allocations();
    CHECK(after == before);
  }
}

TEST_CASE_TEMPLATE("nor do the kernels: for up to 64 vectors, and from the second time on for more", T,
                   ADASUM_TEST_FORMATS) {
  const serial_space exec;
  const std::size_t length = 500;
  const segments cut{400, 0, 100};
  const auto g = random_gradients<T>(600, length, 2);
  for (const std::size_t n : {1, 2, 3, 9, 33, 64, 65, 200, 600, 100}) {
    CAPTURE(n);
    std::vector<const T*> vectors;
    for (std::size_t i = 0; i < n; ++i) vectors.push_back(g[i].data());
    std::vector<double> gram(cut.size() * packed_size(n)), weights(cut.size() * n, 0.5);
    std::vector<T> out(length);
    std::vector<double> sum(length);
    const std::vector<const double*> sums(n, sum.data());
    const auto run = [&] {
      exec.measure(whole(cut), std::span<const T* const>(vectors), gram.data());
      exec.measure_in_double(whole(cut), std::span<const T* const>(vectors), gram.data());
      exec.mix(whole(cut), std::span<const T* const>(vectors), weights.data(), out.data());
      exec.mix_in_double(whole(cut), std::span<const T* const>(vectors), weights.data(), sum.data());
      exec.mix_in_double(whole(cut), std::span<const double* const>(sums), weights.data(), out.data());
    };
    if (n > 64) run();
    const auto before = allocations();
    run();
    const auto after = allocations();
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
  const auto before = allocations();
  adasum_pair(exec, g[0], g[1], out, cut);
  const auto after = allocations();
  CHECK(after == before);
}

}  // namespace test_of_allocation
