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

template <class Space>
void measure_and_mix(const Space& space, const std::vector<std::vector<float>>& g, const segments& cut,
                     std::vector<double>& gram, std::vector<float>& out) {
  std::vector<const float*> at;
  for (const auto& vector : g) at.push_back(vector.data());
  gram.resize(cut.size() * packed_size(g.size()));
  const std::vector<double> weights(cut.size() * g.size(), 0.5);
  space.template measure<float>(whole(cut), at, gram.data());
  space.template mix<float>(whole(cut), at, weights.data(), out.data());
}

}  // namespace

TEST_CASE("from the second call on, adasum_pair allocates nothing") {
  const auto exec = eager_threads(3);
  const std::size_t length = 100000;
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

TEST_CASE("whichever allocation fails: std::bad_alloc, `out` as it was or complete, and the next call is right") {
  for (const std::size_t n : sizes{2, 3, 70}) {
    const auto g = random_gradients<float>(n, 30000, 3);
    const segments cut{10, 25000, 4990};
    const std::vector<float> before(cut.total(), 7);
    std::vector<double> gram, expected_gram;
    std::vector<float> out = before, expected = before;
    measure_and_mix(serial_space(), g, cut, expected_gram, expected);
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
          measure_and_mix(exec, g, cut, gram, out);
        } catch (const std::bad_alloc&) {
          threw = true;
        }
        ran_out = planned.any();
      }
      CHECK(threw == ran_out);
      failures += threw;
      CHECK(same_bits(out, threw ? before : expected));
      measure_and_mix(exec, g, cut, gram, out);
      CHECK(same_bits(gram, expected_gram));
      CHECK(same_bits(out, expected));
    }
    CHECK(failures >= 5);  // the test's own arrays, threads, pieces, sums
  }
}

}  // namespace test_of_exec_threads_allocation
