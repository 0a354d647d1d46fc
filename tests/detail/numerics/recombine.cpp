// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Squares that leave the range of float or double, and subtrees that cancel.
#include <adasum/combine.hpp>
#include <adasum/core/weigh.hpp>
#include <adasum/detail/numerics/recombine.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/pair.hpp>
#include <adasum/tree.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "support/doctest_scalars.hpp"
#include "support/every_instruction_set.hpp"
#include "support/oracle_errors.hpp"
#include "support/oracle_range.hpp"
#include "support/random_gradients.hpp"
#include "support/sizes.hpp"

namespace test_of_detail_numerics_recombine {

using namespace adasum;
using namespace adasum::detail;
using namespace adasum::test;

#ifdef ADASUM_TEST_EIGEN
#define ADASUM_TEST_BFLOAT16 , Eigen::bfloat16
#else
#define ADASUM_TEST_BFLOAT16
#endif

namespace {

template <class T>
std::vector<T> times(std::vector<T> vector, double factor) {
  for (T& value : vector) value = from_double<T>(to_double(value) * factor);
  return vector;
}

/// Combines one segment; checks the result, and the report's norms and orthogonality against long double.
template <class T>
report check_adasum(const std::vector<std::vector<T>>& gradients, const serial_space& exec = serial_space{}) {
  const segments cut{gradients.front().size()};
  std::vector<T> out(cut.total());
  const auto oracle = oracle_with_errors<T>(rules::adasum{}, gradients, cut);
  const auto found = adasum_tree(exec, gradients, out, cut);
  const auto& bound = found.recombined_segments() > 0 ? oracle.pairwise_error : oracle.gram_error;
  CHECK(worst_error_over_bound(out, oracle.values, bound, cut) <= 1);
  if (gradients.size() == 2) {
    adasum_pair(exec, gradients[0], gradients[1], out);
    CHECK(worst_error_over_bound(out, oracle.values, bound, cut) <= 1);
  }

  real squares = 0;
  const real eta = inner_product_error<T>(2, cut.total());
  const auto leaves = oracle_leaves(gradients, {0, cut.total()});
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    squares += leaves[i].mass * leaves[i].mass;
    // Half of the square's relative error, and the rounding of a norm that may itself be subnormal.
    CHECK(std::abs(static_cast<real>(found.norm(i, 0)) - leaves[i].mass) <= eta * leaves[i].mass + 0x1p-1074L);
  }
  // Where the last merge is of norms like the result's, ‖result‖² is off by a few η of Σ‖gᵢ‖².
  const real orthogonality = squares == 0 ? 1 : dot(oracle.values, oracle.values) / squares;
  CHECK(std::abs(static_cast<real>(found.orthogonality()) - orthogonality) <=
        8 * eta + 2 * bound[0] / std::sqrt(squares));
  return found;
}

constexpr std::size_t length = 501;

}  // namespace

TEST_CASE("float gradients whose squares leave the range of float") {
  for (const auto set : every_instruction_set())
    for (const double scale : {1e-25, 1e-38, 1e19, 1e25, 3e37})
      for (const auto kind : {gradient_kind::independent, gradient_kind::duplicate, gradient_kind::with_zeros})
        for (const std::size_t n : sizes{2, 3}) {
          CAPTURE(to_string(set));
          CAPTURE(scale);
          CAPTURE(to_string(kind));
          auto g = random_gradients<float>(n, 5000, 1, kind);
          for (auto& vector : g) vector = times(vector, scale);
          // Terms may be beyond the largest float, 3e38, where norms are beyond 2^126.
          CHECK(check_adasum(g, serial_space(set)).recombined_segments() == (scale > 1e37 ? 1 : 0));
        }
}

TEST_CASE_TEMPLATE("terms beyond the largest float, whose sum is not", T, float ADASUM_TEST_BFLOAT16) {
  for (const auto set : every_instruction_set())
    for (const std::size_t n : sizes{2, 4})
      for (const std::size_t count : sizes{2, 40, 5000}) {
        CAPTURE(to_string(set));
        CAPTURE(n);
        CAPTURE(count);
        // Opposed, but by more than the roundings of bfloat16.
        auto g = random_gradients<T>(n, count, 13);
        for (std::size_t i = 1; i < n; i += 2)
          for (std::size_t x = 0; x < count; ++x)
            g[i][x] = from_double<T>(0.25 * to_double(g[i][x]) - 0.75 * to_double(g[i - 1][x]));
        for (auto& vector : g) vector = times(vector, 2.5e38);
        check_adasum(g, serial_space(set));
        for (T& value : g[0]) value = from_double<T>(1e30 * (to_double(value) / 2.5e38));  // short beside the others
        check_adasum(g, serial_space(set));
      }
  std::vector<T> out(2);
  const auto largest = from_double<T>(3e38), negative = from_double<T>(-3e38);
  adasum_pair(serial_space{}, std::vector{largest, largest}, std::vector{negative, negative}, out);
  CHECK(to_double(out[0]) == 0);
  CHECK(to_double(out[1]) == 0);
}

TEST_CASE("float gradients with blocks of very different size") {
  for (const auto set : every_instruction_set()) {
    auto g = random_gradients<float>(2, 20000, 2, gradient_kind::near_parallel);
    for (std::size_t x = 0; x < 20000; ++x)
      for (auto& vector : g) vector[x] *= x < 5000 ? 1e25f : x < 10000 ? 1e-25f : x < 15000 ? 1e-42f : 1.0f;
    CHECK(check_adasum(g, serial_space(set)).recombined_segments() == 0);
    // Without the largest block, the smaller ones decide.
    for (auto& vector : g) vector.erase(vector.begin(), vector.begin() + 5000);
    check_adasum(g, serial_space(set));
    for (auto& vector : g) vector.resize(10000);
    check_adasum(g, serial_space(set));
  }
}

#ifdef ADASUM_TEST_EIGEN
TEST_CASE("16-bit gradients at the ends of their range") {
  for (const std::size_t n : sizes{2, 3}) {
    for (const double scale : {1e-30, 1e-20, 1e20, 1e37}) {
      CAPTURE(scale);
      auto g = random_gradients<Eigen::bfloat16>(n, length, 3, gradient_kind::near_parallel);
      for (auto& vector : g) vector = times(vector, scale);
      check_adasum(g);
    }
    for (const double scale : {0x1p-20, 0x1p-14, 15000.0}) {
      CAPTURE(scale);
      auto g = random_gradients<Eigen::half>(n, length, 3, gradient_kind::near_parallel);
      for (auto& vector : g) vector = times(vector, scale);
      check_adasum(g);
    }
  }
}
#endif

TEST_CASE("double gradients whose squares leave the range of double" * doctest::skip(!real_holds_squares)) {
  for (const double scale : {1e-300, 1e-170, 1e-155, 1e-100, 1e100, 1e155, 1e170, 1e300})
    for (const auto kind : all_gradient_kinds)
      for (const std::size_t n : sizes{1, 2, 3, 5}) {
        CAPTURE(scale);
        CAPTURE(to_string(kind));
        CAPTURE(n);
        auto g = random_gradients<double>(n, length, 4, kind);
        for (auto& vector : g) vector = times(vector, scale);
        const bool outside = scale < 1e-125 || scale > 1e125;
        CHECK((check_adasum(g).recombined_segments() > 0) == outside);
      }
}

TEST_CASE("double gradients of very different size" * doctest::skip(!real_holds_squares)) {
  for (const auto& norms : {std::pair{1e170, 1e-170}, {1e300, 1e-300}, {1.0, 1e-170}, {1e170, 1.0}, {1e5, 1e-160}})
    for (const auto kind : {gradient_kind::independent, gradient_kind::near_parallel, gradient_kind::duplicate}) {
      const double large = norms.first, small = norms.second;
      CAPTURE(large);
      CAPTURE(small);
      CAPTURE(to_string(kind));
      auto g = random_gradients<double>(4, length, 5, kind);
      for (std::size_t i = 0; i < 4; ++i) g[i] = times(g[i], i % 2 == 0 ? large : small);
      check_adasum(std::vector{g[0], g[1]});
      check_adasum(std::vector{g[1], g[0]});
      check_adasum(g);
    }
}

TEST_CASE("collinear gradients of very different size are averaged") {
  const auto a = random_gradients<double>(1, length, 6)[0];
  const auto large = times(a, 0x1p564), small = times(a, -0x1p-564);  // 1e±170
  std::vector<double> out(length);
  adasum_pair(serial_space{}, large, small, out);
  for (std::size_t x = 0; x < length; ++x) REQUIRE(out[x] == doctest::Approx(large[x] / 2).epsilon(1e-13));
  adasum_pair(serial_space{}, small, large, out);
  for (std::size_t x = 0; x < length; ++x) REQUIRE(out[x] == doctest::Approx(large[x] / 2).epsilon(1e-13));
}

TEST_CASE("subnormal double gradients") {
  constexpr double least = std::numeric_limits<double>::denorm_min();
  std::vector<double> out(2);
  adasum_pair(serial_space{}, std::vector{least, 0.0}, std::vector{0.0, least}, out);
  CHECK(out == std::vector{least, least});  // orthogonal
  adasum_pair(serial_space{}, std::vector{16 * least, 64 * least}, std::vector{8 * least, 32 * least}, out);
  CHECK(out == std::vector{12 * least, 48 * least});  // collinear
  adasum_pair(serial_space{}, std::vector{3 * least, least}, std::vector{0.0, 0.0}, out);
  CHECK(out == std::vector{3 * least, least});
}

TEST_CASE("segments of every size side by side: each gets its own treatment" * doctest::skip(!real_holds_squares)) {
  const segments cut{100, 0, 57, 100, 31, 100};
  const double scales[] = {1e170, 1, 0, 1, 1e-300, 1e-3};
  auto g = random_gradients<double>(3, cut.total(), 7);
  for (auto& vector : g)
    for (std::size_t k = 0; k < cut.size(); ++k)
      for (std::size_t x = 0; x < cut.length(k); ++x) vector[cut.offset(k) + x] *= scales[k];
  std::vector<double> out(cut.total());
  const auto found = adasum_tree(serial_space{}, g, out, cut);
  CHECK(found.recombined_segments() == 2);
  const auto oracle = oracle_with_errors<double>(rules::adasum{}, g, cut);
  CHECK(worst_error_over_bound(out, oracle.values, oracle.either(), cut) <= 1);
  CHECK(found.orthogonality(1) == 1);
  CHECK(found.orthogonality(2) == 1);
  CHECK(found.orthogonality(0) == doctest::Approx(found.orthogonality()).epsilon(1e-12));  // nothing else counts there
}

TEST_CASE("sum and mean at the ends of the range" * doctest::skip(!real_holds_squares)) {
  for (const double scale : {1e-300, 1e170, 1e300}) {
    auto g = random_gradients<double>(3, length, 8);
    for (auto& vector : g) vector = times(vector, scale);
    std::vector<double> out(length);
    const auto check = [&](auto rule) {
      combine(serial_space{}, g, out, rule);
      const auto oracle = oracle_with_errors<double>(rule, g, segments{length});
      CHECK(worst_error_over_bound(out, oracle.values, oracle.pairwise_error, segments{length}) <= 1);
    };
    check(rules::sum{});
    check(rules::mean{});
  }
}

namespace {

/// Adasum by the weights that one Gram matrix gives, whether they can be trusted or not.
template <class T>
std::vector<T> adasum_from_gram_alone(const std::vector<std::vector<T>>& g) {
  const serial_space exec;
  const segments cut{g.front().size()};
  std::vector<const T*> vectors;
  for (const auto& vector : g) vectors.push_back(vector.data());
  std::vector<double> gram(packed_size(g.size())), weights(g.size());
  std::vector<std::size_t> leaves(g.size(), 1);
  std::vector<T> out(cut.total());
  weigh_scratch scratch(g.size());
  rules::adasum rule;
  exec.measure<T>(whole(cut), vectors, gram.data());
  CHECK(weigh_along_tree(rule, gram_view{gram.data(), g.size()}, leaves.data(), weights.data(), scratch) ==
        weighing::needs_vectors);
  exec.mix<T>(whole(cut), vectors, weights.data(), out.data());
  return out;
}

}  // namespace

TEST_CASE("subtrees that cancel are combined vector by vector") {
  constexpr double noise = 1e-7;
  for (const std::size_t n : sizes{4, 8}) {
    CAPTURE(n);
    // Leaves 2i and 2i + 1 are opposed but for the noise, of norm 1e-7: their squares have lost 14 of 16 digits.
    auto g = random_gradients<double>(n, length, 9);
    for (std::size_t i = 0; i < n; i += 2)
      for (std::size_t x = 0; x < length; ++x) g[i + 1][x] = -g[i][x] + noise * g[i + 1][x];
    CHECK(check_adasum(g).recombined_segments() == 1);

    const auto oracle = oracle_with_errors<double>(rules::adasum{}, g, segments{length});
    const auto naive = adasum_from_gram_alone(g);
    CHECK(worst_error_over_bound(naive, oracle.values, oracle.pairwise_error, segments{length}) > 1);
  }
}

TEST_CASE("a subtree of four that cancels only as a whole") {
  // adasum(p, q) = p + q for disjoint p and q; leaves 2 and 3 undo both but for noise, leaves 4 to 7 are ordinary.
  auto g = random_gradients<double>(8, length, 10);
  for (std::size_t x = 0; x < length; ++x) {
    g[x % 2][x] = 0;
    g[2][x] = -g[0][x] + 1e-8 * g[2][x];
    g[3][x] = -g[1][x] + 1e-8 * g[3][x];
  }
  CHECK(check_adasum(g).recombined_segments() == 1);
}

TEST_CASE("exactly opposed gradients cancel to zero") {
  auto g = random_gradients<double>(2, length, 11);
  std::vector<double> out(length);
  g[1] = times(g[0], -1);
  adasum_pair(serial_space{}, g[0], g[1], out);
  CHECK(out == std::vector<double>(length, 0.0));
}

TEST_CASE_TEMPLATE("what is left of opposed gradients is rounding, and neutral", T, double, float) {
  // 1.5·value is no T, so g - g leaves errors; were they kept, half of what lies along them would be lost.
  for (const std::size_t n : sizes{4, 8})
    for (const std::size_t count : sizes{4, 1000}) {
      CAPTURE(n);
      CAPTURE(count);
      auto g = random_gradients<T>(n, count, 11);
      for (std::size_t x = 0; x < count; ++x) g[1][x] = -g[0][x];
      for (std::size_t i = 4; i < n; ++i) g[i].assign(count, 0);
      std::vector<T> out(count), expected(count);
      CHECK(adasum_tree(serial_space{}, g, out).recombined_segments() == 1);
      adasum_pair(serial_space{}, g[2], g[3], expected);
      if constexpr (std::is_same_v<T, double>) CHECK(out == expected);
      // The one in double, rounded once; the other in float lanes.
      for (std::size_t x = 0; x < count; ++x)
        CHECK(std::abs(out[x] - expected[x]) <= T{0x1p-22f} * (std::abs(g[2][x]) + std::abs(g[3][x])));
    }
}

TEST_CASE("the number of sums over ranks does not grow with the number of segments") {
  // One for each merge and one for the root; three for each merge if squares leave the range of double.
  const auto sums_of = [](std::size_t count, double scale) {
    const std::vector<std::size_t> leaves(4, 1);
    std::vector<std::size_t> unsettled(count);
    std::iota(unsettled.begin(), unsettled.end(), std::size_t{0});
    auto g = random_gradients<double>(4, 2 * count, 12, gradient_kind::opposed);
    for (auto& vector : g) vector = times(vector, scale);
    std::vector<const void*> vectors;
    for (const auto& vector : g) vectors.push_back(vector.data());
    const serial_space exec;
    rules::adasum rule;
    std::vector<double> scratch(recombination::scratch_size(rule, count, 4));
    recombination run(
        ref_to_space<double>(exec), rule, vectors, leaves, unsettled, 1, 0,
        [](std::size_t k) { return recombined_range{{2 * k, 2 * k + 2}, 2, {{0, 2}}}; }, scratch);
    std::size_t sums = 0;
    while (!run.advance().empty()) ++sums;
    CHECK(run.require_success().size() == count);
    return sums;
  };
  for (const std::size_t count : sizes{1, 2, 1000}) {
    CHECK(sums_of(count, 1) == 4);
    CHECK(sums_of(count, 1e-170) == 10);
  }
}

TEST_CASE("a difference of a few roundings is still a gradient under sum") {
  std::vector<double> a(length, 1.0), b(length, -1 - 0x1p-52), out(length);
  const auto found =
      combine(serial_space{}, std::array{std::span<const double>(a), std::span<const double>(b)}, out, rules::sum{});
  CHECK(out == std::vector<double>(length, -0x1p-52));
  CHECK(found.recombined_segments() == 0);
}

TEST_CASE("the norm of what is left where gradients nearly cancel is that of the result") {
  std::vector<double> out(2);
  const report found =
      combine(serial_space{}, std::vector<std::vector<double>>{{1, 0.3}, {-1, -0.3 + 1e-9}}, out, rules::adasum{});
  REQUIRE(found.recombined_segments() == 1);
  CHECK(std::abs(found.result_norm(0) / std::hypot(out[0], out[1]) - 1) < 1e-12);  // the quadratic form says 0
}

}  // namespace test_of_detail_numerics_recombine
