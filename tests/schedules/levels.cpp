// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/schedules/levels.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <adasum/adasum.hpp>

#include "support/random_gradients.hpp"
#include "support/sizes.hpp"
#include "support/thread_reduction.hpp"

namespace test_of_schedules_levels {

using adasum::index_range;
using adasum::stage;
using adasum::detail::any_number_of_parts;
using adasum::detail::level;
using adasum::detail::levels_of;

namespace {

constexpr std::size_t length = 2310;  // 2 · 3 · 5 · 7 · 11: parts are equal

std::vector<stage> stages(int rank, int size, std::size_t radix, std::size_t most_parts = any_number_of_parts) {
  return adasum::detail::stages_by_levels(rank, size, length, radix, most_parts);
}

std::vector<std::size_t> radices(std::size_t ranks, std::size_t radix) {
  std::vector<std::size_t> found;
  for (const auto& one : levels_of(ranks, radix)) found.push_back(one.radix);
  return found;
}

/// How many ranks wait for the result somewhere.
int waiting(int size, std::size_t radix) {
  int count = 0;
  for (int rank = 0; rank < size; ++rank) count += !stages(rank, size, radix).back().survives();
  return count;
}

using numbers = std::vector<std::size_t>;

}  // namespace

TEST_CASE("levels: the prime factors in ascending order, together where the radix allows") {
  CHECK(levels_of(1, 2).empty());
  CHECK(radices(2, 2) == numbers{2});
  CHECK(radices(16, 2) == numbers{2, 2, 2, 2});
  CHECK(radices(32, 4) == numbers{4, 4, 2});
  CHECK(radices(24, 2) == numbers{2, 2, 2, 3});
  CHECK(radices(24, 4) == numbers{4, 2, 3});
  CHECK(radices(24, 8) == numbers{8, 3});
  CHECK(radices(24, 24) == numbers{24});
  CHECK(radices(96, 6) == numbers{4, 4, 6});
  CHECK(radices(100, 2) == numbers{2, 2, 5, 5});
  CHECK(radices(112, 4) == numbers{4, 4, 7});
  CHECK(radices(480, 4) == numbers{4, 4, 2, 3, 5});
  CHECK(radices(1000, 8) == numbers{8, 5, 5, 5});
  std::size_t span = 1;
  for (const auto& one : levels_of(1000, 4)) {
    CHECK(one.span == span);
    CHECK_FALSE(one.folds);
    span = one.width();
  }
  CHECK(span == 1000);
}

TEST_CASE("levels: only a prime above 7 and above the radix is folded") {
  const auto folds = [](std::size_t ranks, std::size_t radix) {
    return std::ranges::any_of(levels_of(ranks, radix), &level::folds);
  };
  for (std::size_t ranks = 1; ranks <= 300; ++ranks) {
    CAPTURE(ranks);
    auto rest = ranks;
    for (const std::size_t small : {2u, 3u, 5u, 7u})
      while (rest % small == 0) rest /= small;
    CHECK(folds(ranks, 2) == (rest > 1));
  }
  CHECK(folds(22, 10));
  CHECK_FALSE(folds(22, 11));
  for (const int size : {2, 3, 5, 6, 7, 12, 15, 30, 48, 96, 100, 105, 112}) {
    CAPTURE(size);
    for (const std::size_t radix : {2u, 4u, 6u, 16u}) CHECK(waiting(size, radix) == 0);
  }
  CHECK(waiting(11, 2) == 3);
  CHECK(waiting(22, 2) == 2 * 3);
  CHECK(waiting(22, 16) == 0);
  CHECK(waiting(143, 2) == 143 - 8 * 8);  // 11 · 13: of both factors, 8 are left
}

TEST_CASE("levels: those ranks meet that differ in one digit, with their gradients in order") {
  // 30 = 2 · 3 · 5; rank 17 is 1 + 2 · (2 + 3 · 2).
  const auto of_17 = stages(17, 30, 2);
  REQUIRE(of_17.size() == 3);
  CHECK(of_17[0].members == std::vector{16, 17});
  CHECK(of_17[0].leaf_offsets == numbers{16, 17, 18});
  CHECK(of_17[0].sum_over == std::vector{16, 17});
  CHECK(of_17[0].part() == index_range{1155, 2310});
  CHECK(of_17[1].members == std::vector{13, 15, 17});
  CHECK(of_17[1].self == 2);
  CHECK(of_17[1].leaf_offsets == numbers{12, 14, 16, 18});
  CHECK(of_17[1].sum_over == std::vector{12, 13, 14, 15, 16, 17});
  CHECK(of_17[1].part() == index_range{1925, 2310});
  CHECK(of_17[2].members == std::vector{5, 11, 17, 23, 29});
  CHECK(of_17[2].self == 2);
  CHECK(of_17[2].leaf_offsets == numbers{0, 6, 12, 18, 24, 30});
  CHECK(of_17[2].sum_over.size() == 30);
  CHECK(of_17[2].part() == index_range{2079, 2156});
  for (const auto& one : of_17) CHECK(one.survivors == one.members.size());

  const auto whole = stages(17, 30, 2, 1);
  REQUIRE(whole.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(whole[i].members == of_17[i].members);
    CHECK(whole[i].leaf_offsets == of_17[i].leaf_offsets);
    CHECK(whole[i].part() == index_range{0, length});
    CHECK(whole[i].replicated());
    CHECK(whole[i].sum_over == std::vector{17});
  }
}

TEST_CASE("levels: a large prime folds parts, among the ranks that hold the same one") {
  // 22 = 2 · 11, and of 11 vectors the first six are folded in pairs. Rank 5 is 1 + 2 · 2, rank 7 is 1 + 2 · 3.
  const auto keeper = stages(5, 22, 2), waits = stages(7, 22, 2);
  REQUIRE(keeper.size() == 5);  // a pair; the fold; 8 vectors by two
  REQUIRE(waits.size() == 2);
  for (const auto& one : {keeper[1], waits[1]}) {
    CHECK(one.members == std::vector{5, 7});
    CHECK(one.leaf_offsets == numbers{4, 6, 8});
    CHECK(one.survivors == 1);
    CHECK(one.held == index_range{1155, 2310});
    CHECK(one.parts == std::vector{index_range{1155, 2310}});
    CHECK(one.sum_over == std::vector{4, 5});
  }
  CHECK(keeper[1].survives());
  CHECK_FALSE(waits[1].survives());
  CHECK(keeper[2].members == std::vector{1, 5});  // (0 … 3) and (4 … 7)
  CHECK(keeper[2].leaf_offsets == numbers{0, 4, 8});
  CHECK(keeper[2].sum_over == std::vector{0, 1, 4, 5});
  CHECK(keeper[4].leaf_offsets == numbers{0, 14, 22});
  CHECK(keeper[4].sum_over == std::vector{0, 1, 4, 5, 8, 9, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21});
}

TEST_CASE("levels: above the last that cuts, parts are exchanged whole, and summed over those that hold the others") {
  // 30 = 2 · 3 · 5; rank 17 is 1 + 2 · (2 + 3 · 2). Its pair's six ranks, 12 … 17, hold the six parts of one vector.
  const auto all = stages(17, 30, 2), six = stages(17, 30, 2, 6), two = stages(17, 30, 2, 5);
  REQUIRE(six.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(six[i].members == all[i].members);
    CHECK(six[i].leaf_offsets == all[i].leaf_offsets);
    CHECK(six[i].survivors == all[i].survivors);
    CHECK(six[i].replicated() == (i > 1));
    CHECK(two[i].replicated() == (i > 0));  // two parts: three times as many would be more than five
  }
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(six[i].parts == all[i].parts);
    CHECK(six[i].sum_over == all[i].sum_over);
  }
  CHECK(six[2].held == all[1].part());
  CHECK(six[2].part() == all[1].part());
  CHECK(six[2].sum_over == std::vector{12, 13, 14, 15, 16, 17});
  for (std::size_t i = 1; i < 3; ++i) {
    CHECK(two[i].part() == all[0].part());
    CHECK(two[i].sum_over == std::vector{16, 17});
  }
  // 24 = 2 · 2 · 2 · 3: once a level does not cut, none above it does.
  const auto halved = stages(23, 24, 2, 3);
  REQUIRE(halved.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) CHECK(halved[i].replicated() == (i > 0));
}

TEST_CASE("levels: a large prime folds parts that are exchanged whole") {
  // As above, where all levels cut: 22 = 2 · 11. Rank 7 gives its half to rank 5, which goes on with that half.
  const auto keeper = stages(5, 22, 2, 2), waits = stages(7, 22, 2, 2);
  REQUIRE(keeper.size() == 5);
  REQUIRE(waits.size() == 2);
  CHECK_FALSE(waits[1].survives());
  CHECK(waits[1].sum_over == std::vector{4, 5});
  CHECK(keeper[2].members == std::vector{1, 5});
  for (std::size_t i = 1; i < 5; ++i) {
    CHECK(keeper[i].held == index_range{1155, 2310});
    CHECK(keeper[i].part() == keeper[i].held);
    CHECK(keeper[i].sum_over == std::vector{4, 5});
  }
  // Of 11 vectors in four parts, three of the eight that are left meet others at the third distance with whole parts.
  const auto of_eleven = stages(0, 11, 2, 4);
  REQUIRE(of_eleven.size() == 4);
  CHECK(of_eleven[2].sum_over == std::vector{0, 2, 4, 6});
  CHECK(of_eleven[2].part() == index_range{0, 577});
  CHECK(of_eleven[3].sum_over == std::vector{0, 2, 4, 6});
  CHECK(of_eleven[3].members == std::vector{0, 7});
  CHECK(of_eleven[3].part() == of_eleven[2].part());
}

TEST_CASE("levels: a rank alone meets itself") {
  const auto alone = stages(0, 1, 2);
  REQUIRE(alone.size() == 1);
  CHECK(alone.front().members == std::vector{0});
  CHECK(alone.front().survives());
  CHECK(alone.front().part() == index_range{0, length});
}

namespace {

/// Gradients that tell the tree exactly: for any three leaves a segment, in which the two that meet first hold (1, 0) and
/// (0, 1), the third (1, 1), and all others zero. Along the tree the two add up to (1, 1), the mean of which and of the
/// third is (1, 1), and nothing is rounded. Along any other tree, three leaves meet in another order somewhere, and
/// (3, 5)/4 meets (1, 0) or (0, 1), which does not give (1, 1). Of many leaves, some hundred such segments are enough.
template <class T>
std::vector<std::vector<T>> telling_gradients(std::size_t leaves) {
  std::vector<numbers> meeting(leaves, numbers(leaves));  // how many leaves two of them have around them when they meet
  adasum::for_each_merge(leaves, [&](std::size_t first, std::size_t middle, std::size_t last) {
    for (auto i = first; i < middle; ++i)
      for (auto j = middle; j < last; ++j) meeting[i][j] = meeting[j][i] = last - first;
  });
  std::vector<std::vector<T>> gradients(leaves);
  std::size_t count = 0;
  const auto step = 1 + leaves * leaves * leaves / 6 / 300;
  const auto add_segment = [&](std::size_t i, std::size_t j, std::size_t third) {
    if (count++ % step != 0) return;
    for (std::size_t leaf = 0; leaf < leaves; ++leaf) {
      gradients[leaf].push_back(leaf == i || leaf == third ? T(1) : T(0));
      gradients[leaf].push_back(leaf == j || leaf == third ? T(1) : T(0));
    }
  };
  for (std::size_t i = 0; i < leaves; ++i)
    for (auto j = i + 1; j < leaves; ++j)
      for (auto k = j + 1; k < leaves; ++k) {
        const auto ij = meeting[i][j], ik = meeting[i][k], jk = meeting[j][k];
        if (ij < ik)
          add_segment(i, j, k);
        else if (jk < ik)
          add_segment(j, k, i);
        else
          add_segment(i, k, j);
      }
  return gradients;
}

template <class Visitor>
void for_each_schedule_of_levels(Visitor&& visit) {
  adasum::test::for_each_schedule(visit);
  for (const std::size_t radix : {3u, 6u, 12u})
    visit(adasum::schedules::recursive_halving{radix}, "recursive_halving of " + std::to_string(radix));
  for (const std::size_t parts : {4u, 6u})
    for (const std::size_t radix : {2u, 4u})
      visit(adasum::schedules::recursive_halving{radix, parts},
            "recursive_halving of " + std::to_string(radix) + " in " + std::to_string(parts) + " parts");
  visit(adasum::schedules::recursive_doubling{4}, "recursive_doubling of 4");
}

// Without folding, and with: 22 = 2 · 11 folds parts, 33 = 3 · 11 of three ranks.
const auto reduced_rank_counts = adasum::test::few_or_all({6, 15, 22}, {6, 12, 15, 22, 24, 30, 33});

}  // namespace

TEST_CASE("levels: every schedule and the local tree give the same bits where nothing is rounded") {
  for (const int size : reduced_rank_counts) {
    const auto gradients = telling_gradients<float>(static_cast<std::size_t>(size));
    const auto elements = gradients.front().size();
    const adasum::segments segs(std::vector<std::size_t>(elements / 2, 2));
    std::vector<float> local(elements);
    adasum::adasum_tree(adasum::serial_space{}, gradients, local, segs);
    CHECK(local == std::vector<float>(elements, 1));
    for_each_schedule_of_levels([&](const auto& order, const std::string& name) {
      CAPTURE(size);
      CAPTURE(name);
      const auto ranks = adasum::test::reduce_on_threads<float>(gradients, segs, adasum::rules::adasum{}, order);
      for (const auto& rank : ranks) CHECK(adasum::test::same_bits(rank.gradient, local));
    });
  }
}

TEST_CASE("levels: any gradients, against the local tree") {
  const adasum::segments segs{7, 0, 1001, 1, 300};
  for (const int size : reduced_rank_counts) {
    const auto gradients = adasum::test::random_gradients<double>(static_cast<std::size_t>(size), segs.total(), 3);
    std::vector<double> local(segs.total());
    adasum::adasum_tree(adasum::serial_space{}, gradients, local, segs);
    for_each_schedule_of_levels([&](const auto& order, const std::string& name) {
      CAPTURE(size);
      CAPTURE(name);
      const auto ranks = adasum::test::reduce_on_threads<double>(gradients, segs, adasum::rules::adasum{}, order);
      adasum::test::check_same_on_all_ranks(ranks);
      double largest = 0, error = 0;
      for (std::size_t i = 0; i < local.size(); ++i) {
        largest = std::max(largest, std::abs(local[i]));
        error = std::max(error, std::abs(ranks.front().gradient[i] - local[i]));
      }
      CHECK(error <= 1e-13 * largest);  // another tree is off by far more
    });
  }
}

TEST_CASE("hierarchical: two do the same if all that they are made of is the same") {
  using adasum::rules::mean;
  using adasum::schedules::hierarchical;
  const std::vector<int> nodes{0, 0, 1};
  const hierarchical one{nodes, mean{}};
  CHECK(one == hierarchical{nodes, mean{}});
  CHECK(one != hierarchical{std::vector{0, 1, 1}, mean{}});
  auto other = one;
  other.radix = 3;
  CHECK(one != other);
  const hierarchical outer{nodes, mean{}, adasum::schedules::recursive_halving{}};
  CHECK(outer != hierarchical{nodes, mean{}, adasum::schedules::recursive_halving{.radix = 4}});
  const hierarchical robust{nodes, adasum::rules::multi_krum{}};
  CHECK(robust != hierarchical{nodes, adasum::rules::multi_krum{.byzantine = 1}});
}

}  // namespace test_of_schedules_levels
