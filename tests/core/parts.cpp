// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/core/error.hpp>
#include <adasum/core/parts.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <limits>
#include <list>
#include <vector>

namespace test_of_core_parts {

using adasum::index_range;
using adasum::parts;

TEST_CASE("made from lengths of any integer types, in braces or from a range") {
  const parts expected{4, 0, 6};
  CHECK(expected.size() == 3);
  CHECK(expected.total() == 10);
  CHECK(expected.of_rank(0) == index_range{0, 4});
  CHECK(expected.of_rank(1) == index_range{4, 4});
  CHECK(expected.of_rank(2) == index_range{4, 10});
  const std::vector<int> ints{4, 0, 6};
  const std::list<long> list(ints.begin(), ints.end());
  const int rows = 2;
  const std::size_t columns = 3;
  CHECK(parts(ints) == expected);
  CHECK(parts(ints.begin(), ints.end()) == expected);
  CHECK(parts(list) == expected);
  CHECK(parts{4L, 0, columns * 2} == expected);
  CHECK(parts{rows * 2, 0u, columns * 2} == expected);
  const parts copy(expected);
  CHECK(copy == expected);
  CHECK(parts{}.size() == 0);
  CHECK(parts{}.total() == 0);
}

TEST_CASE("a negative length, and too many elements, name the rank") {
  CHECK_THROWS_WITH_AS((parts{3, -2}), doctest::Contains("the part of rank 1 has the negative length -2"),
                       adasum::bad_input);
  CHECK_THROWS_WITH_AS((parts{std::numeric_limits<std::size_t>::max(), std::size_t{1}}),
                       doctest::Contains("overflows at the part of rank 1"), adasum::bad_input);
}

}  // namespace test_of_core_parts
