// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/schedule/machine.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <limits>
#include <set>
#include <span>
#include <string>

namespace test_of_schedule_machine {

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
  for_each_constant(on, [&](const std::string& name, std::span<double> some) {
    CHECK(names.insert(name).second);
    numbers += some.size();
    for (double& one : some)
      for (const double wrong :
           {-1e-9, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
        const double right = one;
        one = wrong;
        CHECK(bad_constant_of(on) == name);
        one = right;
      }
  });
  CHECK(numbers == sizeof(machine) / sizeof(double));  // none is forgotten
  CHECK(constants_of(on).size() == numbers);
}

}  // namespace test_of_schedule_machine
