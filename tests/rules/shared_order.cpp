// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/rules/orders.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace test_of_rules_shared_order {

using namespace adasum;
using order = std::vector<std::size_t>;

TEST_CASE("shared_order: as described, computed by a program in Python") {
  CHECK(rules::shared_order(5, 0, 0)(6) == order{0, 3, 2, 4, 5, 1});
  CHECK(rules::shared_order(5, 1, 0)(6) == order{0, 5, 2, 3, 1, 4});
  CHECK(rules::shared_order(5, 0, 1)(6) == order{0, 2, 5, 4, 3, 1});
  CHECK(rules::shared_order(5, 0, 0)(1) == order{0});
  CHECK(rules::shared_order(5, 0, 0)(0).empty());
}

TEST_CASE("shared_order: each of the orders of three about as often as the others") {
  std::map<std::size_t, int> seen;  // by the order's digits
  for (std::uint64_t call = 0; call < 6000; ++call) {
    const auto drawn = rules::shared_order(1, call, 0)(3);
    ++seen[100 * drawn[0] + 10 * drawn[1] + drawn[2]];
  }
  CHECK(seen.size() == 6);
  for (const auto& [which, times] : seen) {
    CHECK(times > 850);
    CHECK(times < 1150);
  }
}

}  // namespace test_of_rules_shared_order
