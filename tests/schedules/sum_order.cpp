// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/core/gram.hpp>
#include <adasum/schedules/sum_order.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace test_of_schedules_sum_order {

using adasum::detail::sum_order;

namespace {

constexpr std::size_t group_sizes[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10,  11,  12,  13,   14,  15,
                                       16, 17, 31, 32, 33, 48, 63, 64, 65, 100, 128, 257, 1000, 1024};

constexpr std::size_t radices[] = {2, 4, 8};

/// Exchanges of this rank, and messages that it sends.
std::pair<std::size_t, std::size_t> traffic(std::size_t size, std::size_t self, std::size_t radix) {
  const sum_order order(size, self, radix);
  std::size_t messages = 0;
  for (std::size_t i = 0; i < order.exchanges(); ++i)
    order.visit(i, [&](std::size_t) { ++messages; }, [](std::size_t) {});
  return {order.exchanges(), messages};
}

/// Who sends to whom in one exchange.
using messages = std::set<std::pair<std::size_t, std::size_t>>;

/// "0 1 2" of three ranks.
std::string in_order(std::size_t size) {
  std::string all;
  for (std::size_t i = 0; i < size; ++i) all += (i == 0 ? "" : " ") + std::to_string(i);
  return all;
}

std::string without_brackets(std::string sum) {
  std::erase_if(sum, [](char c) { return c == '(' || c == ')'; });
  return sum;
}

}  // namespace

TEST_CASE("what one rank sends, the other receives, once") {
  for (const auto size : group_sizes)
    for (const auto radix : radices) {
      if (size > 257) continue;
      CAPTURE(size);
      CAPTURE(radix);
      const auto exchanges = sum_order(size, 0, radix).exchanges();
      for (std::size_t exchange = 0; exchange < exchanges; ++exchange) {
        messages sent, received;
        bool once = true;
        for (std::size_t self = 0; self < size; ++self) {
          std::size_t from_others = 0;
          const auto before = sum_order(size, self, radix)
                                  .visit(
                                      exchange, [&](std::size_t to) { once &= sent.emplace(self, to).second; },
                                      [&](std::size_t from) {
                                        once &= received.emplace(from, self).second;
                                        ++from_others;
                                      });
          CHECK(before <= from_others);
          CHECK(from_others <= sum_order::most_received(size, radix));
        }
        CHECK(once);
        CHECK(sent == received);
      }
    }
}

TEST_CASE("every rank adds all ranks' numbers, each once, in the same order and with the same brackets") {
  for (std::size_t size = 1; size <= 40; ++size)
    for (const auto radix : radices) {
      CAPTURE(size);
      CAPTURE(radix);
      std::vector<std::string> sums;
      for (std::size_t self = 0; self < size; ++self) sums.push_back(std::to_string(self));
      for (std::size_t exchange = 0; exchange < sum_order(size, 0, radix).exchanges(); ++exchange) {
        const auto before_it = sums;
        for (std::size_t self = 0; self < size; ++self) {
          std::vector<std::string> terms;
          const auto own =
              sum_order(size, self, radix)
                  .visit(exchange, [](std::size_t) {}, [&](std::size_t from) { terms.push_back(before_it[from]); });
          if (terms.empty()) continue;
          terms.insert(terms.begin() + static_cast<std::ptrdiff_t>(own), before_it[self]);
          sums[self] = "(" + terms.front();
          for (std::size_t i = 1; i < terms.size(); ++i) sums[self] += " " + terms[i];
          sums[self] += ")";
        }
      }
      for (const auto& sum : sums) CHECK(sum == sums.front());
      CHECK(without_brackets(sums.front()) == in_order(size));
    }
}

TEST_CASE("no rank sends more messages in one exchange than there is room for") {
  for (const auto size : group_sizes)
    for (const auto radix : radices)
      for (std::size_t self = 0; self < size; ++self) {
        const sum_order order(size, self, radix);
        for (std::size_t exchange = 0; exchange < order.exchanges(); ++exchange) {
          std::size_t sends = 0;
          order.visit(exchange, [&](std::size_t) { ++sends; }, [](std::size_t) {});
          REQUIRE(sends <= 2 * (radix - 1));
          REQUIRE(sends <= sum_order::most_messages);
        }
      }
}

TEST_CASE("exchanges: log P to the base of the radix, rounded up") {
  for (const auto size : group_sizes) {
    CAPTURE(size);
    for (const auto radix : radices) {
      CAPTURE(radix);
      std::size_t exchanges = 0;
      for (std::size_t reached = 1; reached < size; reached *= radix) ++exchanges;
      for (std::size_t self = 0; self < size; ++self) CHECK(traffic(size, self, radix).first == exchanges);
    }
  }
}

TEST_CASE("messages: where the group is a product of radices, as many from each rank") {
  const auto messages = [](std::size_t size, std::size_t radix) {
    const auto first = traffic(size, 0, radix).second;
    for (std::size_t self = 1; self < size; ++self) CHECK(traffic(size, self, radix).second == first);
    return first;
  };
  CHECK(messages(4, 8) == 3);
  CHECK(messages(6, 8) == 5);
  CHECK(messages(32, 8) == 7 + 3);
  CHECK(messages(64, 8) == 7 + 7);
  CHECK(messages(100, 8) == 4 + 4 + 3);
  CHECK(messages(1000, 8) == 7 + 4 + 4 + 4);
  CHECK(messages(32, 4) == 3 + 3 + 1);
  CHECK(messages(64, 4) == 3 + 3 + 3);
  CHECK(messages(64, 2) == 6);
}

TEST_CASE("the radix, by the number of vectors: one segment's inner products fill 512 bytes, and 8 KiB") {
  using adasum::packed_size;
  using adasum::detail::sum_radix;
  CHECK(sum_radix(2) == 8);
  CHECK(sum_radix(10) == 8);
  CHECK(packed_size(10) * sizeof(double) <= 512);
  CHECK(sum_radix(11) == 4);
  CHECK(packed_size(11) * sizeof(double) > 512);
  CHECK(sum_radix(44) == 4);
  CHECK(packed_size(44) * sizeof(double) <= 8192);
  CHECK(sum_radix(45) == 2);
  CHECK(packed_size(45) * sizeof(double) > 8192);
}

}  // namespace test_of_schedules_sum_order
