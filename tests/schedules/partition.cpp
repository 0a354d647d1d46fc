// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/schedules/partition.hpp>

#include <doctest/doctest.h>

#include <cstddef>

namespace test_of_schedules_partition {

using adasum::index_range;
using adasum::detail::part_of;

TEST_CASE("of two halves the first has floor(size / 2) elements") {
  CHECK(part_of({10, 17}, 2, 0) == index_range{10, 13});
  CHECK(part_of({10, 17}, 2, 1) == index_range{13, 17});
  // No overflow where size · count would not fit.
  const index_range huge{0, ~std::size_t{0}};
  CHECK(part_of(huge, 64, 0).begin == 0);
  CHECK(part_of(huge, 64, 63).end == huge.end);
}

TEST_CASE("parts follow each other, and their sizes differ by at most one") {
  for (const std::size_t size : {0u, 1u, 2u, 7u, 64u, 1001u})
    for (const std::size_t count : {1u, 2u, 3u, 8u, 100u}) {
      CAPTURE(size);
      CAPTURE(count);
      std::size_t end = 5;
      for (std::size_t i = 0; i < count; ++i) {
        const auto part = part_of({5, 5 + size}, count, i);
        CHECK(part.begin == end);
        CHECK(part.size() >= size / count);
        CHECK(part.size() <= size / count + 1);
        end = part.end;
      }
      CHECK(end == 5 + size);
    }
}

}  // namespace test_of_schedules_partition
