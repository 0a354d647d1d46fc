// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Many vectors along the tree, combined in groups: against long double, against the Gram matrix of all vectors, and what
// becomes of vectors that are not finite or cancel.
#include <adasum/combine.hpp>
#include <adasum/core/space_members.hpp>
#include <adasum/detail/numerics/combine_in_groups.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/exec/threads.hpp>
#include <adasum/tree.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "support/bits.hpp"
#include "support/doctest_scalars.hpp"
#include "support/eager_threads.hpp"
#include "support/oracle_errors.hpp"
#include "support/random_gradients.hpp"
#include "support/sizes.hpp"

namespace test_of_detail_numerics_combine_in_groups {

using namespace adasum;
using namespace adasum::test;

namespace {

const serial_space exec;

/// Combines all vectors at once.
struct without_groups : serial_space {
  void measure_in_double() const = delete;
  void mix_in_double() const = delete;
  friend bool operator==(const without_groups&, const without_groups&) = default;
};
auto for_recombining(const without_groups& space) {
  return adasum::for_recombining(static_cast<const serial_space&>(space));
}
}  // namespace
}  // namespace test_of_detail_numerics_combine_in_groups

template <>
inline constexpr std::size_t adasum::detail::own_round_bytes<test_of_detail_numerics_combine_in_groups::without_groups> =
    own_round_bytes<adasum::serial_space>;

namespace test_of_detail_numerics_combine_in_groups {
namespace {

static_assert(detail::combines_in_groups<serial_space, float> && !detail::combines_in_groups<without_groups, float>);

/// Takes all segments in one round.
struct in_one_round : serial_space {
  friend bool operator==(const in_one_round&, const in_one_round&) = default;
};
auto for_recombining(const in_one_round& space) {
  return adasum::for_recombining(static_cast<const serial_space&>(space));
}

/// Such segments that n vectors of them are combined in groups, if there are enough.
segments grouped_segments(std::size_t n) {
  const std::size_t length = 3 * 8192 / (n > 8 ? n - 8 : 4) + 5;
  segments cut{length, std::size_t{3}, std::size_t{0}, std::size_t{17}, 2 * length, length / 2};
  REQUIRE(detail::grouping::pays(n, cut) == (n >= 12));
  return cut;
}

/// The same weights, norms and number of recombined segments, up to roundings of doubles. Those add to first order:
///
/// Every inner product is off by η‖a‖‖b‖ (inner_product_error), so norms by η/2 of themselves. At a node of a and b, whose
/// terms have m = Σ|cᵢ|‖gᵢ‖ for each of the two, a·b is off by η mₐ m_b; thus the factor 1 − a·b/(2 a·a) by half of
/// η mₐ m_b/‖a‖² and, as a·a is off by η mₐ², no more than that once again; and all terms of a together move by
/// η (mₐ/‖a‖)² m_b. Vectors that are independent of each other add up like orthogonal ones: m² <= n‖a‖² for n leaves. So
/// each of the levels adds n·η of Σ|cᵢ|‖gᵢ‖, the norm of the result, from a quadratic form, as much once more, and each of
/// the two reports is as far away. (What the errors of children add to a·b is less by a cosine, and left out.)
void check_same_findings(const report& found, const report& expected, const segments& cut) {
  CHECK(found.recombined_segments() == expected.recombined_segments());
  const auto near = [](double a, double b, double allowed) {
    return (std::isnan(a) && std::isnan(b)) || a == b || std::abs(a - b) <= allowed;
  };
  const auto n = expected.contributions();
  for (std::size_t k = 0; k < expected.segments(); ++k) {
    CAPTURE(k);
    const auto eta = static_cast<double>(inner_product_error<double>(n, cut.length(k)));
    double mass = 0;
    for (std::size_t i = 0; i < n; ++i)
      if (expected.weight(i, k) != 0) mass += std::abs(expected.weight(i, k)) * expected.norm(i, k);
    const double levels = std::ceil(std::log2(static_cast<double>(n)));
    const double allowed = 2 * (levels + 1) * static_cast<double>(n) * eta * mass;
    REQUIRE(near(found.result_norm(k), expected.result_norm(k), allowed));
    for (std::size_t i = 0; i < n; ++i) {
      const double norm = expected.norm(i, k);
      REQUIRE(near(found.norm(i, k), norm, eta * norm));
      REQUIRE(near(found.weight(i, k), expected.weight(i, k), allowed / norm));
    }
  }
}

}  // namespace

TEST_CASE_TEMPLATE("adasum_tree of 2 to 70 vectors against long double", T, ADASUM_TEST_FORMATS) {
  for (const std::size_t n : few_or_all<std::size_t>(
           {2, 7, 8, 9, 17, 25, 64, 67},
           {2, 3, 7, 8, 9, 11, 12, 13, 15, 16, 17, 18, 22, 24, 25, 31, 32, 33, 37, 48, 64, 67, 70})) {
    CAPTURE(n);
    const auto cut = grouped_segments(n);
    const auto g =
        random_gradients<T>(n, cut.total(), n, n % 2 == 0 ? gradient_kind::independent : gradient_kind::scaled);
    std::vector<T> out(cut.total()), other(cut.total());
    const auto found = adasum_tree(exec, g, out, cut);
    const auto oracle = oracle_with_errors<T>(rules::adasum{}, g, cut);
    CHECK(worst_error_over_bound(out, oracle.values, n == 2 ? oracle.either() : oracle.gram_error, cut) <= 1);
    check_same_findings(found, adasum_tree(without_groups{}, g, other, cut), cut);
    auto in_place = g;
    adasum_tree(exec, in_place, in_place[n / 2], cut);
    CHECK(same_bits(in_place[n / 2], out));
  }
}

TEST_CASE_TEMPLATE("so many vectors that groups have more than eight", T, float, double) {
  for (const std::size_t n :
       few_or_all<std::size_t>({575, 577}, {575, 576, 577, 640, 1000})) {  // 577 is a prime number
    CAPTURE(n);
    const segments cut{40, 3, 0, 25};
    REQUIRE(detail::grouping::pays(n, cut));
    REQUIRE((detail::grouping::most_leaves(n) > 8) == (n >= 576));
    const auto g = random_gradients<T>(n, cut.total(), n);
    std::vector<T> out(cut.total()), other(cut.total());
    const auto found = adasum_tree(exec, g, out, cut);
    check_same_findings(found, adasum_tree(without_groups{}, g, other, cut), cut);
    const auto oracle = oracle_with_errors<T>(rules::adasum{}, g, cut);
    CHECK(worst_error_over_bound(out, oracle.values, oracle.either(), cut) <= 1);
  }
}

TEST_CASE_TEMPLATE("a space that takes all segments in one round", T, float, double) {
  const segments many(random_segments(90000, 150, 1)), few{7000, 3, 0, 17};
  for (const std::size_t n : sizes{13, 24}) {
    CAPTURE(n);
    for (const auto& cut : {many, few}) {
      CAPTURE(cut.size());
      REQUIRE(detail::grouping::pays(n, cut) == (n == 24 || cut.size() == 4));
      auto g = random_gradients<T>(n, cut.total(), n);
      g[5][cut.offset(cut.size() - 1)] = quiet_nan<T>();
      for (std::size_t x = cut.offset(0); x < cut.offset(1); ++x) g[1][x] = -g[0][x];  // to be recombined
      std::vector<T> out(cut.total()), expected(cut.total());
      const auto found = adasum_tree(in_one_round{}, g, out, cut);
      check_same_findings(found, adasum_tree(without_groups{}, g, expected, cut), cut);
      CHECK(found.recombined_segments() == 1);
      for (std::size_t x = 0; x < out.size(); ++x)
        REQUIRE((std::isnan(expected[x]) ? std::isnan(out[x])
                                         : std::abs(out[x] - expected[x]) <= 64 * std::numeric_limits<T>::epsilon()));
    }
  }
}

TEST_CASE("other rules along the tree") {
  const auto cut = grouped_segments(20);
  const auto g = random_gradients<float>(20, cut.total(), 1, gradient_kind::with_zeros);
  std::vector<float> out(cut.total()), expected(cut.total());
  const auto check = [&](auto rule) {
    check_same_findings(combine(exec, g, out, rule, cut), combine(without_groups{}, g, expected, rule, cut), cut);
    const auto oracle = oracle_with_errors<float>(rule, g, cut);
    CHECK(worst_error_over_bound(out, oracle.values, oracle.gram_error, cut) <= 1);
  };
  check(rules::adasum{});
  check(rules::sum{});
  check(rules::mean{});
}

TEST_CASE_TEMPLATE("segments too long for their sums to be kept", T, float, double) {
  constexpr std::size_t n = 24, sums = 3;
  const std::size_t longest = detail::grouping::kept_bytes / (sums * sizeof(double));
  const segments cut{longest + 1, std::size_t{20000}, longest};
  REQUIRE(detail::grouping::pays(n, cut));
  REQUIRE(!detail::grouping::are_kept(sums, cut.length(0)));
  REQUIRE(detail::grouping::are_kept(sums, cut.length(2)));
  const auto g = random_gradients<T>(n, cut.total(), 3);
  std::vector<T> out(cut.total()), expected(cut.total());
  check_same_findings(adasum_tree(exec, g, out, cut), adasum_tree(without_groups{}, g, expected, cut), cut);
  double worst = 0;
  for (std::size_t x = 0; x < out.size(); ++x)
    worst = std::max(worst, static_cast<double>(std::abs(out[x] - expected[x])));
  CHECK(worst <= 64 * std::numeric_limits<T>::epsilon());
  std::vector<T> by_threads(cut.total());
  adasum_tree(threads_space(3), g, by_threads, cut);
  CHECK(same_bits(by_threads, out));
}

TEST_CASE_TEMPLATE("threads_space computes the same bits", T, ADASUM_TEST_FORMATS) {
  for (const std::size_t n : sizes{12, 16, 37}) {
    CAPTURE(n);
    const auto g = random_gradients<T>(n, 30000, n);
    std::vector<T> out(30000), expected(30000);
    for (const auto& cut : {segments{30000}, segments{29990, 10}, segments(random_segments(30000, 9, n))})
      for (const auto& threads : {threads_space(2), eager_threads(3)}) {
        REQUIRE(detail::grouping::pays(n, cut));
        adasum_tree(exec, g, expected, cut);
        adasum_tree(threads, g, out, cut);
        CHECK(same_bits(out, expected));
      }
  }
}

TEST_CASE("Inf and NaN: their segments alone, whichever group they are in") {
  constexpr std::size_t n = 16;
  const auto cut = grouped_segments(n);
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const auto good = random_gradients<float>(n, cut.total(), 4);
  std::vector<float> undisturbed(cut.total()), out(cut.total()), expected(cut.total());
  adasum_tree(exec, good, undisturbed, cut);
  for (const std::size_t which : sizes{0, 7, 8, 15})
    for (const float bad : {quiet_nan<float>(), infinity, -infinity}) {
      CAPTURE(which);
      CAPTURE(bad);
      auto g = good;
      g[which][cut.offset(4) + 1] = bad;
      g[which][cut.offset(3)] = bad;
      const auto found = adasum_tree(exec, g, out, cut);
      check_same_findings(found, adasum_tree(without_groups{}, g, expected, cut), cut);
      for (std::size_t k = 0; k < cut.size(); ++k) {
        CAPTURE(k);
        for (std::size_t x = cut.offset(k); x < cut.offset(k) + cut.length(k); ++x)
          REQUIRE((k == 3 || k == 4 ? std::isnan(out[x]) : out[x] == undisturbed[x]));
      }
    }
}

TEST_CASE("NaN beside vectors that cancel, and beside squares out of range") {
  constexpr std::size_t n = 16;
  const auto cut = grouped_segments(n);
  auto g = random_gradients<double>(n, cut.total(), 5);
  std::vector<double> out(cut.total()), expected(cut.total());
  const auto check = [&](std::size_t recombined) {
    const auto found = adasum_tree(exec, g, out, cut);
    CHECK(found.recombined_segments() == recombined);
    check_same_findings(found, adasum_tree(without_groups{}, g, expected, cut), cut);
    for (std::size_t x = 0; x < out.size(); ++x)
      REQUIRE((std::isnan(expected[x]) ? std::isnan(out[x]) : std::abs(out[x] - expected[x]) <= 1e-12));
  };
  for (std::size_t x = 0; x < cut.length(0); ++x) g[1][x] = -g[0][x];
  check(1);
  g[9][3] = quiet_nan<double>();  // in the other group: nothing is left to recombine
  check(0);
  for (std::size_t x = 0; x < cut.length(0); ++x) g[2][x] *= 1e-150;  // but then only the vectors tell
  check(1);
}

TEST_CASE_TEMPLATE("groups whose sums cancel: combined vector by vector, as without groups", T, float, double) {
  constexpr std::size_t n = 32;
  const auto cut = grouped_segments(n);
  auto g = random_gradients<T>(n, cut.total(), 6);
  for (std::size_t i = 0; i < 8; ++i)  // the second group is minus the first one, in one segment
    for (std::size_t x = cut.offset(4); x < cut.offset(5); ++x) g[8 + i][x] = -g[i][x];
  std::vector<T> out(cut.total()), expected(cut.total());
  const auto found = adasum_tree(exec, g, out, cut);
  CHECK(found.recombined_segments() == 1);
  check_same_findings(found, adasum_tree(without_groups{}, g, expected, cut), cut);
  for (std::size_t x = cut.offset(4); x < cut.offset(5); ++x) REQUIRE(out[x] == expected[x]);
}

TEST_CASE("gradients that are excluded") {
  constexpr std::size_t n = 17;
  const auto cut = grouped_segments(n);
  auto g = random_gradients<float>(n, cut.total(), 7);
  for (const std::size_t bad : sizes{2, 10, 11, 12, 13, 14, 15, 16}) g[bad][5] = quiet_nan<float>();
  std::vector<float> out(cut.total()), expected(cut.total());
  const options exclude{.nonfinite = nonfinite_policy::exclude};
  const auto found = combine(exec, g, out, cut, exclude);
  CHECK(found.excluded().size() == 8);
  check_same_findings(found, combine(without_groups{}, g, expected, cut, exclude), cut);
  for (std::size_t x = 0; x < out.size(); ++x) REQUIRE(std::abs(out[x] - expected[x]) <= 1e-6f);
}

TEST_CASE("a sum has the same bits whether it is measured or not") {
  constexpr std::size_t n = 16;
  const auto cut = grouped_segments(n);
  const auto g = random_gradients<double>(n, cut.total(), 11);
  std::vector<double> out(cut.total()), expected(cut.total());
  combine(exec, g, out, cut, rules::sum{});
  combine(exec, g, expected, cut, rules::sum{}, options{.measure = measuring::when_needed});
  CHECK(same_bits(out, expected));
}

TEST_CASE("when groups pay") {
  CHECK(detail::grouping::pays(16, segments{1024}));
  CHECK(!detail::grouping::pays(16, segments{1023}));
  CHECK(!detail::grouping::pays(16, segments{1023, 1024}));
  CHECK(!detail::grouping::pays(11, segments{1 << 20}));
  CHECK(!detail::grouping::pays(16, segments{0}));
  CHECK(!detail::grouping::pays(16, segments()));
}

}  // namespace test_of_detail_numerics_combine_in_groups
