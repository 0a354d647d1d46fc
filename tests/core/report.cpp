// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/combine.hpp>
#include <adasum/core/options.hpp>
#include <adasum/core/report.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/rules/mean.hpp>
#include <adasum/tree.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <vector>

#include "support/sizes.hpp"

namespace test_of_core_report {

using namespace adasum;

namespace {

report adasum_of(const std::vector<std::vector<double>>& gradients, const segments& cut) {
  std::vector<double> out(cut.total());
  return adasum_tree(serial_space{}, gradients, out, cut);
}

}  // namespace

TEST_CASE("norms, weights and orthogonality, segment by segment and overall") {
  // Segment 0: orthogonal. Segment 1: equal. Segment 2: empty. Segment 3: zero.
  const auto r = adasum_of({{3, 0, 5, 0}, {0, 4, 5, 0}}, {2, 1, 0, 1});
  CHECK(r.segments() == 4);
  CHECK(r.contributions() == 2);
  CHECK(r.rule() == "adasum");
  CHECK(r.schedule().empty());
  CHECK(r.measured());
  CHECK(r.finite());
  CHECK(r.norm(0, 0) == doctest::Approx(3));
  CHECK(r.norm(1, 0) == doctest::Approx(4));
  CHECK(r.norm(1, 1) == doctest::Approx(5));
  CHECK(r.norm(0, 2) == 0);
  CHECK(r.weight(0, 0) == 1);
  CHECK(r.weight(0, 1) == doctest::Approx(0.5));
  CHECK(r.result_norm(0) == doctest::Approx(5));
  CHECK(r.result_norm(1) == doctest::Approx(5));
  CHECK(r.result_norm(3) == 0);
  CHECK(r.orthogonality(0) == doctest::Approx(1));
  CHECK(r.orthogonality(1) == doctest::Approx(0.5));
  CHECK(r.orthogonality(2) == 1);
  CHECK(r.orthogonality(3) == 1);
  CHECK(r.orthogonality() == doctest::Approx((25.0 + 25) / (25 + 50)));
  CHECK(r.recombined_segments() == 0);
  CHECK(r.bytes_sent() == 0);
}

TEST_CASE("orthogonality is 1 for orthogonal gradients and 1/n for equal ones") {
  for (const std::size_t n : adasum::test::sizes{1, 2, 3, 5, 8}) {
    std::vector<std::vector<double>> orthogonal(n, std::vector<double>(n, 0));
    for (std::size_t i = 0; i < n; ++i) orthogonal[i][i] = static_cast<double>(i + 1);
    CHECK(adasum_of(orthogonal, {n}).orthogonality() == doctest::Approx(1));
    const std::vector<std::vector<double>> equal(n, {1, -2, 3});
    CHECK(adasum_of(equal, {3}).orthogonality() == doctest::Approx(1.0 / static_cast<double>(n)));
  }
}

TEST_CASE("indices out of range are refused with the sizes") {
  const auto r = adasum_of({{1, 2}, {3, 4}, {5, 6}}, {1, 1});
  CHECK_THROWS_WITH_AS((void)r.norm(3, 0), doctest::Contains("there is no contribution 3, only 3"), bad_input);
  CHECK_THROWS_WITH_AS((void)r.weight(0, 2), doctest::Contains("there is no segment 2, only 2"), bad_input);
  CHECK_THROWS_WITH_AS((void)r.result_norm(9), doctest::Contains("there is no segment 9, only 2"), bad_input);
  CHECK_THROWS_WITH_AS((void)r.orthogonality(2), doctest::Contains("there is no segment 2, only 2"), bad_input);
  CHECK_THROWS_AS((void)report{}.norm(0, 0), bad_input);
}

TEST_CASE("a report without measurements says so") {
  std::vector<float> g{1, 2}, out(2);
  const auto r = combine(serial_space{}, std::vector{g, g}, out, rules::mean{}, segments{2},
                         options{.measure = measuring::when_needed});
  CHECK_FALSE(r.measured());
  CHECK(r.finite());
  CHECK(r.nonfinite().empty());
  CHECK(std::isnan(r.norm(0, 0)));
  CHECK(std::isnan(r.result_norm(0)));
  CHECK(std::isnan(r.orthogonality()));
  CHECK(r.weight(1, 0) == 0.5);
}

TEST_CASE("a report without measurements knows of the gradients that were left out") {
  std::vector<float> good{1, 2}, bad{1, std::numeric_limits<float>::infinity()}, out(2);
  const auto r = combine(serial_space{}, std::vector{good, bad}, out, rules::mean{}, segments{1, 1},
                         options{.measure = measuring::when_needed, .nonfinite = nonfinite_policy::exclude});
  CHECK_FALSE(r.measured());
  CHECK(r.excluded() == std::vector{1});
  CHECK_FALSE(r.finite());
  CHECK(r.nonfinite() == std::vector<nonfinite_input>{{1, 1}});
  CHECK(r.norm(1, 0) == 0);
  CHECK(std::isinf(r.norm(1, 1)));
  CHECK(std::isnan(r.norm(0, 0)));
  CHECK(std::isnan(r.orthogonality()));
  CHECK(r.weight(0, 1) == 1);
  CHECK(r.weight(1, 1) == 0);
}

TEST_CASE("options: equal by value, agreement checks on where asserts are") {
#ifdef NDEBUG
  CHECK_FALSE(options{}.check_agreement);
#else
  CHECK(options{}.check_agreement);
#endif
  CHECK(options{} == options{});
  CHECK(options{.check_agreement = true} != options{.check_agreement = false});
  CHECK(options{}.measure == measuring::always);
}

TEST_CASE("options: a timeout is a duration, and positive") {
  using namespace std::chrono_literals;
  const options short_one{.timeout = 1500ms};
  CHECK(short_one.timeout.count() == 1.5);
  CHECK(options{}.timeout == 60s);
  CHECK_NOTHROW(detail::require_valid(short_one, "call"));
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK_NOTHROW(detail::require_valid(options{.timeout = std::chrono::duration<double>(infinity)}, "call"));
  for (const double wrong : {0.0, -1.0, -infinity, std::numeric_limits<double>::quiet_NaN()})
    CHECK_THROWS_WITH_AS(detail::require_valid(options{.timeout = std::chrono::duration<double>(wrong)}, "call"),
                         doctest::Contains("call: options::timeout is "), bad_input);
}

}  // namespace test_of_core_report
