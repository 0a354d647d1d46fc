// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What threads_space allocates, and what happens when there is no memory.
#include <adasum/adasum.hpp>
#include <adasum/exec/threads.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <new>
#include <optional>
#include <vector>

#include "support/allocations.hpp"
#include "support/bits.hpp"
#include "support/eager_threads.hpp"
#include "support/random_gradients.hpp"
#include "support/sizes.hpp"

namespace test_of_exec_threads_allocation {

using namespace adasum;
using namespace adasum::test;

namespace {

/// @param sum  receives what mix_in_double makes of the vectors, before out receives anything
template <class Space>
void measure_and_mix(const Space& space, const std::vector<std::vector<float>>& g, const segments& cut,
                     std::vector<double>& gram, std::vector<double>& sum, std::vector<float>& out) {
  std::vector<const float*> at;
  for (const auto& vector : g) at.push_back(vector.data());
  gram.resize(cut.size() * packed_size(g.size()));
  const std::vector<double> weights(cut.size() * g.size(), 0.5);
  sum.resize(cut.total());
  space.template measure<float>(whole(cut), at, gram.data());
  space.template mix_in_double<float, double>(whole(cut), at, weights.data(), sum.data());
  space.template mix<float>(whole(cut), at, weights.data(), out.data());
}

}  // namespace

TEST_CASE("from the second call on, adasum_pair allocates nothing") {
  const auto exec = eager_threads(3);
  const std::size_t length = 30000;
  const auto g = random_gradients<float>(2, length, 1);
  const segments cut(random_segments(length, 50, 2));
  std::vector<float> out(length);
  const auto run = [&] {
    adasum_pair(exec, g[0], g[1], out);
    adasum_pair(exec, g[0], g[1], out, cut);
  };
  run();
  const auto before = allocations();
  run();
  CHECK(allocations() == before);
}

TEST_CASE("nor do sums in double, and what is mixed from them") {
  const auto exec = eager_threads(3);
  const segments cut{20000, 5, 2995};
  for (const std::size_t n : sizes{3, 64, 65}) {  // of more than 64, the calling thread keeps room for their addresses
    CAPTURE(n);
    const auto g = random_gradients<float>(n, cut.total(), 4);
    std::vector<const float*> at;
    for (const auto& vector : g) at.push_back(vector.data());
    const std::vector<double> weights(cut.size() * n, 0.5);
    std::vector<double> sum(cut.total());
    const std::vector<const double*> sums(n, sum.data());
    std::vector<float> out(cut.total());
    const auto run = [&] {
      exec.mix_in_double<float, double>(whole(cut), at, weights.data(), sum.data());
      exec.mix_in_double<double, float>(whole(cut), sums, weights.data(), out.data());
    };
    run();
    const auto before = allocations();
    run();
    CHECK(allocations() == before);
  }
}

TEST_CASE("whichever allocation fails: std::bad_alloc, `out` as it was or complete, and the next call is right") {
  for (const std::size_t n : sizes{2, 3, 66}) {  // from 65 on, kernels allocate, too
    const segments cut{10, 2 * 4096, 700};       // a segment of two blocks, which two threads share
    const auto g = random_gradients<float>(n, cut.total(), 3);
    const std::vector<float> before(cut.total(), 7);
    std::vector<double> gram, expected_gram, sum, expected_sum;
    std::vector<float> out = before, expected = before;
    measure_and_mix(serial_space(), g, cut, expected_gram, expected_sum, expected);
    bool ran_out = true;
    std::size_t failures = 0;
    for (std::size_t successes = 0; ran_out; ++successes) {
      CAPTURE(n);
      CAPTURE(successes);
      const auto exec = eager_threads(3);
      out = before;
      bool threw = false;
      {
        const failing_allocations planned(successes);
        try {
          measure_and_mix(exec, g, cut, gram, sum, out);
        } catch (const std::bad_alloc&) {
          threw = true;
        }
        ran_out = planned.any();
      }
      CHECK(threw == ran_out);
      failures += threw;
      CHECK(same_bits(out, threw ? before : expected));
      measure_and_mix(exec, g, cut, gram, sum, out);
      CHECK(same_bits(gram, expected_gram));
      CHECK(same_bits(sum, expected_sum));
      CHECK(same_bits(out, expected));
    }
    CHECK(failures >= 5);  // the test's own arrays, threads, pieces, sums
  }
}

}  // namespace test_of_exec_threads_allocation
