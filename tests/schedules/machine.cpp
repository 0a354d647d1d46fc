// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/schedules/machine.hpp>

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cstddef>
#include <limits>
#include <set>
#include <string>
#include <utility>

namespace test_of_schedules_machine {

using namespace adasum::schedules;

TEST_CASE("a rate is a straight line between its lengths, and level beyond them") {
  constexpr rate some(std::array{1., 2., 4., 8.});
  constexpr std::size_t mebi = 1 << 20;
  CHECK(some.of(0) == 1);
  CHECK(some.of(mebi / 4) == 1);
  CHECK(some.of(mebi / 8 * 5) == 1.5);
  CHECK(some.of(mebi) == 2);
  CHECK(some.of(mebi / 2 * 5) == 3);
  CHECK(some.of(16 * mebi) == 8);
  CHECK(some.of(100 * mebi) == 8);
  CHECK(rate(3).of(2 * mebi) == 3);
}

TEST_CASE("constants: each has a name of its own, and any can be found bad") {
  machine on;
  CHECK(bad_constant_of(on).empty());
  std::set<std::string> names;
  std::size_t numbers = 0;
  for (const auto& [name, first, count] : constant_names) {
    CHECK(names.insert(name).second);
    CHECK(first == numbers);  // none is forgotten
    numbers += count;
    for (auto i = first; i < first + count; ++i)
      for (const double wrong :
           {-1e-9, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
        auto some = constants_of(on);
        some[i] = wrong;
        CHECK(bad_constant_of(std::bit_cast<machine>(some)) == name);
      }
  }
  CHECK(numbers == constants_of(on).size());
}

TEST_CASE("constants: each name belongs to its member") {
  machine on;
  const auto check = [&](double& member, const std::string& name) {
    const double right = std::exchange(member, -1);
    CHECK(bad_constant_of(on) == name);
    member = right;
  };
  for (const std::string link : {"across", "inside"}) {
    auto& of = link == "across" ? on.across : on.inside;
    check(of.latency, link + ".latency");
    check(of.per_message, link + ".per_message");
    for (double& one : of.per_byte.at) check(one, link + ".per_byte");
    check(of.eager_bytes, link + ".eager_bytes");
    check(of.handshake, link + ".handshake");
  }
  check(on.shared.barrier, "shared.barrier");
  for (double& one : on.shared.per_byte.at) check(one, "shared.per_byte");
  for (double& one : on.per_pair_element.at) check(one, "per_pair_element");
  for (double& one : on.per_product.at) check(one, "per_product");
  for (double& one : on.per_term.at) check(one, "per_term");
}

}  // namespace test_of_schedules_machine
