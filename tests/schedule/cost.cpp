// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/schedule/all_to_all.hpp>
#include <adasum/schedule/cost.hpp>
#include <adasum/schedule/recursive_doubling.hpp>
#include <adasum/schedule/recursive_halving.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <vector>

namespace test_of_schedule_cost {

/// The model of docs/scale.md. That it counts what is really sent is tested with messages (tests/allreduce).

using namespace adasum::schedules;
using adasum::schedule_input;

namespace {

constexpr std::size_t float_size = 4;
constexpr int rank_counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 17, 64, 100, 256, 1000, 1024};
constexpr std::size_t lengths[] = {0, 1, 7, 1000, 102'400};

schedule_input floats(std::size_t length) { return {length, float_size, 1, true}; }

template <class Schedule>
std::vector<cost> costs(const Schedule& order, int size, std::size_t length) {
  std::vector<cost> all;
  for (int rank = 0; rank < size; ++rank) all.push_back(cost_of(order, rank, size, floats(length)));
  return all;
}

std::size_t elements(const std::vector<cost>& all) {
  std::size_t sum = 0;
  for (const auto& one : all) sum += one.elements;
  return sum;
}

std::size_t nodes(int size) { return std::bit_floor(static_cast<unsigned>(size)); }
std::size_t log2_of_nodes(int size) { return static_cast<std::size_t>(std::countr_zero(nodes(size))); }

/// Exchanges of a sum over so many ranks, of so many numbers.
std::size_t sum_exchanges(std::size_t size, std::size_t numbers) {
  const std::size_t radix = numbers <= 64 ? 8 : numbers <= 1024 ? 4 : 2;
  std::size_t exchanges = 0;
  for (std::size_t reached = 1; reached < size; reached *= radix) ++exchanges;
  return exchanges;
}

}  // namespace

TEST_CASE("two sums of vectors: twice the elements of one, without records or Gram matrices, and a gather") {
  for (const int size : {3, 8, 64, 100}) {
    CAPTURE(size);
    const std::size_t length = 6400, segments = 5;
    const schedule_input by_tree{length, float_size, segments, true},
        by_sums{.length = length, .element_size = float_size, .segments = segments, .along_tree = false, .sums = 2};
    for (int rank = 0; rank < size; ++rank) {
      const auto tree = cost_of(recursive_halving{}, rank, size, by_tree),
                 sums = cost_of(recursive_halving{}, rank, size, by_sums);
      CHECK(sums.elements == 2 * tree.elements);
      // Two doubles of each segment to each other rank: on its way or by others.
      CHECK(sums.bytes == sums.elements * float_size + 2 * 8 * segments * static_cast<std::size_t>(size - 1));
      CHECK(sums.products == 3 * length);
      CHECK(sums.pair_elements == 0);
      CHECK(sums.terms == 2 * 2 * tree.pair_elements);
    }
  }
}

TEST_CASE("halving, splitting and gram send 2(P-1)·N elements in all, for any number of ranks and elements") {
  // gram: rank r sends N less its slice, and its slice to P - 1 others: Σ = PN - N + (P - 1)N.
  // splitting over 2^k nodes likewise in each stage: Σ = 2(2^k - 1)N; each of the P - 2^k folded ranks sends its N
  // elements and is sent the N of the result: 2(P - 2^k)N more.
  for (const int size : rank_counts)
    for (const auto length : lengths) {
      CAPTURE(size);
      CAPTURE(length);
      const auto expected = 2 * (static_cast<std::size_t>(size) - 1) * length;
      CHECK(elements(costs(recursive_halving{}, size, length)) == expected);
      CHECK(elements(costs(recursive_halving{.radix = 4}, size, length)) == expected);
      CHECK(elements(costs(recursive_halving{.radix = 16}, size, length)) == expected);
      if (size <= 256) CHECK(elements(costs(all_to_all{}, size, length)) == expected);
      const auto folded = static_cast<std::size_t>(size) - nodes(size);
      CHECK(elements(costs(recursive_doubling{}, size, length)) ==
            (nodes(size) * log2_of_nodes(size) + 2 * folded) * length);
    }
}

TEST_CASE("each rank sends 2(P-1)/P·N of them where P divides N; a folded rank N, and who keeps its gradient N more") {
  for (const int size : rank_counts) {
    CAPTURE(size);
    const auto ranks = static_cast<std::size_t>(size), folded = ranks - nodes(size);
    const std::size_t length = ranks * nodes(size);
    if (size <= 256)
      for (const auto& one : costs(all_to_all{}, size, length)) CHECK(one.elements == 2 * (ranks - 1) * nodes(size));
    const auto share = 2 * (nodes(size) - 1) * ranks;  // 2(2^k - 1)/2^k · N
    const auto halving = costs(recursive_halving{}, size, length);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const bool in_pair = rank < 2 * folded, waits = in_pair && rank % 2 == 1;
      CHECK(halving[rank].elements == (waits ? length : share + (in_pair ? length : 0)));
    }
  }
}

TEST_CASE("exchanges, one after another") {
  for (const int size : rank_counts) {
    if (size == 1) continue;
    CAPTURE(size);
    const std::size_t k = log2_of_nodes(size), folding = nodes(size) == static_cast<std::size_t>(size) ? 0 : 2;
    const auto of = [&](const auto& order) { return cost_of(order, 0, size, floats(102'400)).exchanges; };
    CHECK(of(recursive_doubling{}) == k + folding);
    std::size_t of_sums = 0;
    for (std::size_t i = 1; i <= k; ++i) of_sums += (i + 2) / 3;  // 3 numbers over 2^i ranks, by 8
    CHECK(of(recursive_halving{}) == 2 * k + of_sums + folding);
    const auto ranks = static_cast<std::size_t>(size);
    if (size <= 256) {  // where parts of a sum are uneven, some ranks have nothing to do at first
      const auto all = costs(all_to_all{}, size, 102'400);
      CHECK(std::ranges::max(all, {}, &cost::exchanges).exchanges == 2 + sum_exchanges(ranks, ranks * (ranks + 1) / 2));
    }
    std::size_t expected = folding;
    for (std::size_t done = 0; done < k;) {
      done = std::min(done + 3, k);
      expected += 2 + sum_exchanges(std::size_t{1} << done, 36);
    }
    CHECK(of(recursive_halving{.radix = 8}) == expected);
  }
}

TEST_CASE("arithmetic of one stage") {
  const auto two = cost_of(recursive_halving{}, 0, 2, floats(1000));
  CHECK(two.pair_elements == 500);
  CHECK(two.products == 0);
  const auto eight = cost_of(all_to_all{}, 3, 8, floats(1000));
  CHECK(eight.pair_elements == 0);
  CHECK(eight.products == 36 * 125);
  CHECK(eight.terms == 8 * 125);
}

TEST_CASE("seconds are linear in what is counted") {
  const machine on{
      .latency = 1, .per_message = 10, .per_byte = 100, .per_pair_element = 1e3, .per_product = 1e4, .per_term = 1e5};
  CHECK(seconds({.exchanges = 1, .messages = 2, .busier_bytes = 3, .pair_elements = 4, .products = 5, .terms = 6},
                on) == 654'321);
}

}  // namespace test_of_schedule_cost
