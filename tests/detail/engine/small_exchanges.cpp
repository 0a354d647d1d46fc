// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/core/message.hpp>
#include <adasum/detail/engine/small_exchanges.hpp>
#include <adasum/schedules/sum_order.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <map>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace test_of_detail_engine_small_exchanges {

/// Sums over the ranks of a group, all of them in this process.

using adasum::detail::small_allreduce;
using adasum::detail::sum_order;

namespace {

constexpr std::size_t group_sizes[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10,  11,  12,  13,   14,  15,
                                       16, 17, 31, 32, 33, 48, 63, 64, 65, 100, 128, 257, 1000, 1024};

constexpr std::size_t radices[] = {2, 4, 8};

/// What each rank has after the sum. Ranks are numbered otherwise than their places in the group.
std::vector<std::vector<double>> sums(std::vector<std::vector<double>> values, std::size_t radix) {
  const auto size = values.size(), count = values.front().size();
  std::vector<int> group(size);
  for (std::size_t place = 0; place < size; ++place) group[place] = static_cast<int>(3 * (size - place));
  std::vector<std::vector<double>> scratch(size, std::vector<double>(sum_order::most_received(size, radix) * count));
  std::vector<small_allreduce> ranks;
  for (std::size_t place = 0; place < size; ++place)
    ranks.emplace_back(group, place, radix, values[place], scratch[place]);
  for (;;) {
    std::map<std::pair<int, int>, std::span<const std::byte>> sent;
    std::vector<std::vector<adasum::incoming>> received(size);
    std::size_t going_on = 0;
    for (std::size_t place = 0; place < size; ++place) {
      std::vector<adasum::outgoing> out;
      going_on += ranks[place].next(out, received[place]);
      CHECK(out.size() <= sum_order::most_messages);
      for (const auto& message : out) {
        const bool first = sent.emplace(std::pair(group[place], message.peer), message.bytes).second;
        CHECK(first);
      }
    }
    if (going_on == 0) return values;
    CHECK(going_on == size);  // all ranks count the same exchanges
    for (std::size_t place = 0; place < size; ++place)
      for (const auto& buffer : received[place]) {
        const auto message = sent.extract(std::pair(buffer.peer, group[place]));
        REQUIRE(message);
        REQUIRE(message.mapped().size() == buffer.bytes.size());
        std::ranges::copy(message.mapped(), buffer.bytes.begin());
      }
    CHECK(sent.empty());
  }
}

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

}  // namespace

TEST_CASE("every rank gets the sum, and the same bits") {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> any(-1, 1);
  for (const auto size : group_sizes)
    for (const auto radix : radices) {
      constexpr std::size_t count = 7;
      CAPTURE(size);
      CAPTURE(radix);
      std::vector<std::vector<double>> values(size, std::vector<double>(count));
      std::vector<double> expected(count), magnitude(count);
      for (auto& of_rank : values)
        for (std::size_t x = 0; x < count; ++x) {
          of_rank[x] = any(random);
          expected[x] += of_rank[x];
          magnitude[x] += std::abs(of_rank[x]);
        }
      const auto found = sums(values, radix);
      // Either sum, in any order, rounds size - 1 times at most, each time by u times Σ|x| and a little at most.
      const double u = 0x1p-53, bound = 2.0 * static_cast<double>(size) * u * 1.001;
      for (std::size_t x = 0; x < count; ++x) CHECK(std::abs(found[0][x] - expected[x]) <= bound * magnitude[x]);
      for (const auto& of_rank : found) CHECK(same_bits(of_rank, found[0]));
      CHECK(same_bits(sums(values, radix)[0], found[0]));
    }
}

TEST_CASE("each rank's number counts once") {
  for (const auto size : group_sizes) {
    CAPTURE(size);
    for (const auto radix : radices) {
      std::vector<std::vector<double>> values(size, std::vector<double>(1));
      for (std::size_t rank = 0; rank < size; ++rank) values[rank][0] = static_cast<double>(rank * rank + 1);
      const auto n = static_cast<double>(size);
      CHECK(sums(values, radix)[size / 2][0] == (n - 1) * n * (2 * n - 1) / 6 + n);  // small integers: exact
    }
  }
}

TEST_CASE("no numbers, no messages' bytes") { CHECK(sums(std::vector<std::vector<double>>(5), 8).size() == 5); }

}  // namespace test_of_detail_engine_small_exchanges
