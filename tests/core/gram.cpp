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
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j <= i; ++j) CHECK(gram.row(i)[j] == gram(i, j));
}

TEST_CASE("squared distances: from the inner products, never negative, or as they were measured") {
  // Of (3, 0), (0, 2) and (0, 2), whose inner product is a rounding too large.
  const std::vector<double> packed{9, 0, 4, 0, 4.0000001, 4};
  const adasum::gram_view gram(packed.data(), 3);
  CHECK_FALSE(gram.has_squared_distances());
  CHECK(gram.squared_distance(0, 1) == 13);
  CHECK(gram.squared_distance(1, 0) == 13);
  CHECK(gram.squared_distance(1, 2) == 0);
  CHECK(gram.squared_distance(2, 2) == 0);

  const std::vector<double> small{0.25, 0, 0.25}, distances{7, 8, 9};  // none of which the inner products would give
  CHECK(adasum::gram_view(small.data(), 2).squared_distance(1, 0) == 0.5);
  const adasum::gram_view measured(small.data(), 2, distances.data());
  CHECK(measured.has_squared_distances());
  CHECK(measured.squared_distance(0, 1) == 8);
  CHECK(measured.squared_distance(1, 0) == 8);
  CHECK(measured.squared_distance(1, 1) == 0);
}

TEST_CASE("a pair combines one gradient on each side, unless it is told otherwise") {
  constexpr adasum::pair_gram pair{1, 2, 3};
  CHECK(pair.leaves_a == 1);
  CHECK(pair.leaves_b == 1);
}

}  // namespace test_of_core_gram
