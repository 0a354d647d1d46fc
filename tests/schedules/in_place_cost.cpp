// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/schedules/cost.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <span>

#include <adasum/schedules/levels.hpp>

namespace test_of_schedules_in_place_cost {

using namespace adasum::schedules;

TEST_CASE("a short gradient is copied once, and read by all") {
  const in_place_cost of(2, {.length = 256, .element_size = 4});
  CHECK(of.barriers == 1);
  CHECK(of.bytes == 2 * 1024);  // one's own copy, and the other's
  CHECK(of.pair_elements == 256);
}

TEST_CASE("a long gradient is copied there and back but for the slice of all on which the rank works") {
  constexpr std::size_t length = 4000, segments = 3, gram = 4 * 5 / 2 * 8;
  const in_place_cost of(4, {.length = length, .element_size = 4, .segments = segments});
  CHECK(of.barriers == 3);
  CHECK(of.copied == 2 * 3 * (length / 4) * 4);
  CHECK(of.bytes == of.copied + 3 * 3 * (length / 4) * 4 + 3 * segments * gram);
  CHECK(of.in_buffer().copied == 0);
  CHECK(of.in_buffer().bytes == of.bytes - of.copied);
  CHECK(of.pair_elements == 0);
  CHECK(of.products == 10 * length / 4);
  CHECK(of.terms == 4 * length / 4);
}

TEST_CASE("by levels, no rank reads all gradients' numbers, and waits for few") {
  // 64 = 8 · 8 ranks: slices of N/8, then of N/64.
  constexpr std::size_t length = 64'000, segments = 5, gram = 8 * 9 / 2 * 8 * segments, record = 16 * segments;
  const in_place_cost of(64, {.length = length, .element_size = 4, .segments = segments});
  constexpr auto slices = 7 * (length / 8 + length / 64) * 4;  // 63/64 N
  CHECK(of.copied == 2 * length * 4);
  CHECK(of.read == 2 * slices);
  CHECK(of.written == slices);
  // A₁, B₁, C₁ and A₂, C₂ of one round, B₂ over 64 ranks of two.
  CHECK(of.barriers == 7);
  CHECK(of.heard == 7 * 7);
  CHECK(of.numbers == (7 + 14) * gram + 7 * 8 * record);
  CHECK(of.products == 36 * (length / 8 + length / 64));
  CHECK(of.terms == 8 * (length / 8 + length / 64));
  CHECK(of.bytes == of.copied + of.read + of.numbers + of.written);
}

TEST_CASE("inside a node of 48 ranks: 8 · 6, and of unequal nodes a rank that stays behind only waits") {
  constexpr std::size_t length = 48'000, gram8 = 8 * 9 / 2 * 8, gram6 = 6 * 7 / 2 * 8, record = 16;
  const adasum::schedule_input what{.length = length, .element_size = 4};
  const auto levels = [](std::size_t ranks, std::size_t shares, std::size_t radix) {
    return adasum::detail::level_tree(ranks, radix, adasum::detail::large_primes::kept, shares);
  };
  const in_place_cost of(levels(48, 48, 8).stages(0, {0, length}), 0, what);
  constexpr auto slices = (7 * length / 8 + 5 * length / 48) * 4;  // 47/48 N
  CHECK(of.read == 2 * slices);
  CHECK(of.written == slices);
  CHECK(of.barriers == 7);
  // A₁, B₁, C₁; A₂, the sum over 48 = 8 · 6 ranks, C₂.
  CHECK(of.heard == 7 + 7 + 7 + 5 + (7 + 5) + 5);
  CHECK(of.numbers == 7 * gram8 + (7 + 5) * gram6 + 5 * 8 * record);
  CHECK(of.products == 36 * (length / 8) + 21 * (length / 48));
  // 5 shares of 6 ranks: rank 4 has none at the level of three.
  const auto waiting = levels(6, 5, 2).stages(4, {0, length});
  const in_place_cost one(waiting, 4, what), first(std::span<const adasum::stage>(waiting).first(1), 4, what);
  CHECK(one.read == first.read);
  CHECK(one.written == first.written);
  CHECK(one.products == 0);
  CHECK(one.barriers == first.barriers + 2);
}

TEST_CASE("a rule of the whole Gram matrix of 64 ranks: as many bytes of gradients, and matrices of 64 · 65/2") {
  constexpr std::size_t length = 64'000, gram = 64 * 65 / 2 * 8;
  const in_place_cost of(64, {.length = length, .element_size = 4, .along_tree = false});
  CHECK(of.read == 2 * 63 * (length / 64) * 4);
  CHECK(of.written == 63 * (length / 64) * 4);
  CHECK(of.barriers == 2 + 6 + 2);  // two rounds of 8 · 8, and for the sum six of 2
  CHECK(of.heard == 14 + 6 + 14);
  CHECK(of.numbers == 6 * gram);
  CHECK(of.products == 64 * 65 / 2 * length / 64);
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

}  // namespace test_of_schedules_in_place_cost
