// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Inf or NaN in a segment of any gradient makes that whole segment NaN, and only that one; the report says whose it
// was.
#include <adasum/combine.hpp>
#include <adasum/detail/numerics/nonfinite.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/pair.hpp>
#include <adasum/rules/mean.hpp>
#include <adasum/rules/sum.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "support/doctest_scalars.hpp"
#include "support/random_gradients.hpp"
#include "support/sizes.hpp"

namespace test_of_detail_numerics_nonfinite {

using namespace adasum;
using namespace adasum::test;

namespace {

const segments cut{65, 0, 130, 1, 33};
constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();
constexpr double infinite = std::numeric_limits<double>::infinity();

/// `out` is NaN throughout the given segment and holds the bits of `clean` elsewhere.
template <class T>
bool only_segment_is_nan(const std::vector<T>& out, const std::vector<T>& clean, std::size_t segment) {
  for (std::size_t k = 0; k < cut.size(); ++k)
    for (std::size_t x = cut.offset(k); x < cut.offset(k) + cut.length(k); ++x)
      if (k == segment ? !std::isnan(to_double(out[x])) : std::memcmp(&out[x], &clean[x], sizeof(T)) != 0) return false;
  return true;
}

template <class T, class Rule>
void check_rule(Rule rule) {
  const serial_space exec;
  for (const std::size_t n : sizes{1, 2, 3, 5})
    for (const double bad : {nan_value, infinite, -infinite})
      for (const std::size_t which : {std::size_t{0}, n - 1})
        for (const std::size_t segment : {std::size_t{0}, std::size_t{2}, std::size_t{3}})
          for (const std::size_t where : {std::size_t{0}, cut.length(segment) / 2, cut.length(segment) - 1}) {
            CAPTURE(n);
            CAPTURE(bad);
            CAPTURE(which);
            CAPTURE(segment);
            CAPTURE(where);
            auto g = random_gradients<T>(n, cut.total(), n);
            std::vector<T> clean(cut.total()), out(cut.total());
            CHECK(combine(exec, g, clean, rule, cut).finite());
            g[which][cut.offset(segment) + where] = from_double<T>(bad);
            const auto found = combine(exec, g, out, rule, cut);
            REQUIRE(only_segment_is_nan(out, clean, segment));
            REQUIRE(found.nonfinite() == std::vector{nonfinite_input{static_cast<int>(which), segment}});
            REQUIRE_FALSE(found.finite());
            REQUIRE(std::isnan(found.orthogonality()));
            REQUIRE(std::isnan(found.orthogonality(segment)));
            REQUIRE(std::isfinite(found.orthogonality(4)));
          }
}

}  // namespace

TEST_CASE_TEMPLATE("adasum", T, ADASUM_TEST_FORMATS) { check_rule<T>(rules::adasum{}); }
TEST_CASE_TEMPLATE("sum", T, float, double) { check_rule<T>(rules::sum{}); }
TEST_CASE_TEMPLATE("mean", T, float, double) { check_rule<T>(rules::mean{}); }

TEST_CASE_TEMPLATE("adasum_pair, in place", T, ADASUM_TEST_FORMATS) {
  for (const double bad : {nan_value, infinite, -infinite}) {
    auto g = random_gradients<T>(2, cut.total(), 1);
    auto clean = g[0];
    adasum_pair(serial_space{}, g[0], g[1], clean, cut);
    g[1][100] = from_double<T>(bad);
    adasum_pair(serial_space{}, g[0], g[1], g[0], cut);
    CHECK(only_segment_is_nan(g[0], clean, 2));
  }
}

TEST_CASE("several gradients and segments: the report lists exactly those, by segment and then gradient") {
  auto g = random_gradients<float>(4, cut.total(), 1);
  g[3][0] = static_cast<float>(infinite);
  g[1][64] = static_cast<float>(nan_value);
  g[2][cut.offset(3)] = -static_cast<float>(infinite);
  g[0][cut.offset(3)] = static_cast<float>(infinite);
  std::vector<float> out(cut.total());
  const auto found = combine(serial_space{}, g, out, rules::adasum{}, cut);
  CHECK(found.nonfinite() == std::vector<nonfinite_input>{{1, 0}, {3, 0}, {0, 3}, {2, 3}});
}

TEST_CASE("non-finite beside finite gradients that need care of their own") {
  // A finite one whose squares overflow must not be reported.
  auto g = random_gradients<double>(4, cut.total(), 1);
  for (double& value : g[1]) value *= 1e300;
  g[2][3] = infinite;
  std::vector<double> out(cut.total());
  const auto found = combine(serial_space{}, g, out, rules::adasum{}, cut);
  for (std::size_t x = 0; x < cut.length(0); ++x) REQUIRE(std::isnan(out[x]));
  for (std::size_t x = cut.length(0); x < out.size(); ++x) REQUIRE(std::isfinite(out[x]));
  CHECK(found.nonfinite() == std::vector{nonfinite_input{2, 0}});

  // The same with NaN, which is noticed elsewhere.
  g[2][3] = nan_value;
  CHECK(combine(serial_space{}, g, out, rules::adasum{}, cut).nonfinite() == std::vector{nonfinite_input{2, 0}});
}

TEST_CASE("a message lists ten segments of a gradient, and says that there are more") {
  std::vector<unsigned char> flags(3 * 12, 0);
  flags[7] = 1;
  std::fill_n(flags.begin() + 12, 10, 1);
  std::fill_n(flags.begin() + 24, 12, 1);
  CHECK(detail::describe_nonfinite(flags, 12, "rank") ==
        "rank 0 (segment 7); rank 1 (segments 0, 1, 2, 3, 4, 5, 6, 7, 8, 9); "
        "rank 2 (segments 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …)");
  CHECK(detail::describe_nonfinite(std::span(flags).first(7), 7, "rank").empty());
}

TEST_CASE("a zero gradient does not hide a non-finite one") {
  std::vector<std::vector<float>> g(3, std::vector<float>(10, 0.0f));
  g[1][9] = static_cast<float>(infinite);
  std::vector<float> out(10);
  CHECK_FALSE(combine(serial_space{}, g, out, rules::adasum{}).finite());
  for (const float value : out) CHECK(std::isnan(value));
}

}  // namespace test_of_detail_numerics_nonfinite
