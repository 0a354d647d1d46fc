// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/core/gram.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <numeric>
#include <vector>

namespace test_of_core_gram {

TEST_CASE("packed: the lower triangle row by row, each entry in one place, found from both sides") {
  CHECK(adasum::packed_size(0) == 0);
  for (std::size_t n = 1; n <= 20; ++n) {
    std::size_t next = 0;
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j <= i; ++j) {
        CHECK(adasum::packed_index(i, j) == next++);
        CHECK(adasum::packed_index(j, i) == adasum::packed_index(i, j));
      }
    CHECK(adasum::packed_size(n) == next);
  }
}

TEST_CASE("a view reads the packed matrix") {
  std::vector<double> packed(adasum::packed_size(3));
  std::iota(packed.begin(), packed.end(), 10.0);
  const adasum::gram_view gram(packed.data(), 3);
  CHECK(gram.size() == 3);
  CHECK(gram(0, 0) == 10);
  CHECK(gram(2, 1) == 14);
  CHECK(gram(1, 2) == 14);
  CHECK(gram(2, 2) == 15);
}

}  // namespace test_of_core_gram
