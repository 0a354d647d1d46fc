// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/schedule/in_place_cost.hpp>

#include <doctest/doctest.h>

#include <cstddef>

namespace test_of_schedule_in_place_cost {

using namespace adasum::schedules;

TEST_CASE("a short gradient is copied once, and read by all") {
  const in_place_cost of(2, {.length = 256, .element_size = 4});
  CHECK(of.barriers == 1);
  CHECK(of.bytes == 2 * 1024);  // one's own copy, and the other's
  CHECK(of.pair_elements == 256);
}

TEST_CASE("a long gradient is copied there and back, and each rank works on its slice of all") {
  constexpr std::size_t length = 4000, segments = 3, gram = 4 * 5 / 2 * 8;
  const in_place_cost of(4, {.length = length, .element_size = 4, .segments = segments});
  CHECK(of.barriers == 3);
  CHECK(of.bytes == 2 * length * 4 + 3 * 3 * (length / 4) * 4 + 3 * segments * gram);
  CHECK(of.pair_elements == 0);
  CHECK(of.products == 10 * length / 4);
  CHECK(of.terms == 4 * length / 4);
}

TEST_CASE("seconds are linear in what is counted") {
  const machine on{
      .shared = {.barrier = 1, .per_byte = 10}, .per_pair_element = 100, .per_product = 1e3, .per_term = 1e4};
  in_place_cost of(1, {});
  of.barriers = 1;
  of.bytes = 2;
  of.pair_elements = 3;
  of.products = 4;
  of.terms = 5;
  CHECK(seconds(of, on) == 54'321);
}

}  // namespace test_of_schedule_in_place_cost
