// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// adasum_pair, adasum_tree and combine against the long double oracle, within bounds derived in oracle_errors.hpp.
#include <adasum/combine.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/pair.hpp>
#include <adasum/tree.hpp>

#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "support/doctest_scalars.hpp"
#include "support/oracle_errors.hpp"
#include "support/random_gradients.hpp"
#include "support/sizes.hpp"

namespace test_of_combine {

using namespace adasum;
using namespace adasum::test;

namespace {

const serial_space exec;

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

/// Combines under a rule, checks the result, and the report against the exact norms.
template <class T, class Rule>
std::vector<T> check_combine(Rule rule, const std::vector<std::vector<T>>& gradients, const segments& cut) {
  std::vector<T> out(cut.total());
  const report found = combine(exec, gradients, out, rule, cut);
  const auto oracle = oracle_with_errors<T>(rule, gradients, cut);
  // The kinds used here do not cancel, but for two floats' vectors at a narrow angle from opposed.
  if (gradients.size() > 2 || format_of<T> != number_format::binary32) CHECK(found.recombined_segments() == 0);
  CHECK(worst_error_over_bound(out, oracle.values, oracle.gram_error, cut) <= 1);

  for (std::size_t k = 0; k < cut.size(); ++k) {
    const real eta = inner_product_error<T>(gradients.size(), cut.length(k)) + 4 * unit_of_double;
    real mass = 0;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const real exact = oracle_leaves(gradients, segments_view(cut).range(k))[i].mass;
      REQUIRE(std::abs(static_cast<real>(found.norm(i, k)) - exact) <= eta * exact);
      mass += std::abs(static_cast<real>(found.weight(i, k))) * exact;
    }
    // result_norm comes from inner products: its square is off by η·mass², itself by no more than √η·mass.
    const std::span<const real> part(oracle.values.data() + cut.offset(k), cut.length(k));
    const real n2 = static_cast<real>(gradients.size() * gradients.size() + 8) * unit_of_double;
    REQUIRE(std::abs(static_cast<real>(found.result_norm(k)) - norm(part)) <=
            std::sqrt(eta + n2) * mass + oracle.gram_error[k]);
  }
  return out;
}

}  // namespace

TEST_CASE_TEMPLATE("adasum_pair: kinds × lengths around every vector and block width", T, ADASUM_TEST_FORMATS) {
  // 4096 elements are one block of float lanes with 64-byte vectors; narrower vectors have blocks of 1024 and 2048.
  for (const std::size_t length : sizes{0,  1,   2,   3,   7,   8,   15,   16,   17,   31,   32,   33,   63,  64,
                                        65, 127, 128, 129, 255, 257, 1023, 1025, 2049, 4095, 4096, 4097, 8191})
    for (const auto kind : all_gradient_kinds) {
      CAPTURE(length);
      CAPTURE(to_string(kind));
      const auto g = random_gradients<T>(2, length, 1000 + length, kind);
      std::vector<T> out(length);
      adasum_pair(exec, g[0], g[1], out);
      const auto oracle = oracle_with_errors<T>(rules::adasum{}, g, segments{length});
      REQUIRE(worst_error_over_bound(out, oracle.values, oracle.gram_error, segments{length}) <= 1);
    }
}

TEST_CASE_TEMPLATE("adasum_pair: long vectors, where a plain float sum would drift", T, ADASUM_TEST_FORMATS) {
  // Σx² of 0.7 ≤ x < 0.8 drifts in one direction when it is kept in a float: by far more than the weights' bound,
  // 1e-5, after 300000 additions in at most 64 chains. Each element's error is judged by itself here.
  constexpr std::size_t length = 300007;
  std::vector<T> a(length), b(length), out(length);
  uniform_numbers uniform(11);
  for (std::size_t x = 0; x < length; ++x) {
    a[x] = from_double<T>(0.75 + 0.05 * uniform());
    b[x] = from_double<T>(x % 2 == 0 ? 0.3 : 0.9);
  }
  adasum_pair(exec, a, b, out);
  const std::vector both{a, b};
  const auto oracle = oracle_with_errors<T>(rules::adasum{}, both, segments{length});
  CHECK(worst_error_over_bound(out, oracle.values, oracle.gram_error, segments{length}) <= 1);
}

TEST_CASE_TEMPLATE("adasum_pair by segments, empty and odd ones, out being an input", T, ADASUM_TEST_FORMATS) {
  for (const std::size_t seed : sizes{1, 2, 3}) {
    CAPTURE(seed);
    const segments cut(random_segments(1501, 12, seed));
    auto g = random_gradients<T>(2, cut.total(), seed, gradient_kind::scaled);
    std::vector<T> out(cut.total());
    adasum_pair(exec, g[0], g[1], out, cut);
    const auto oracle = oracle_with_errors<T>(rules::adasum{}, g, cut);
    CHECK(worst_error_over_bound(out, oracle.values, oracle.gram_error, cut) <= 1);

    auto a = g[0], b = g[1];
    adasum_pair(exec, a, g[1], a, cut);
    CHECK(same_bits(a, out));
    adasum_pair(exec, g[0], b, b, cut);
    CHECK(same_bits(b, out));
    auto both = g[0];
    adasum_pair(exec, both, both, both, cut);  // collinear: the mean of a and a
    CHECK(worst_error_over_bound(both, oracle_combine(rules::adasum{}, std::vector{g[0], g[0]}, cut),
                                 oracle_with_errors<T>(rules::adasum{}, std::vector{g[0], g[0]}, cut).gram_error,
                                 cut) <= 1);
  }
}

TEST_CASE_TEMPLATE("combine: rules × counts × kinds × segmentations", T, ADASUM_TEST_FORMATS) {
  for (const std::size_t n : few_or_all<std::size_t>({1, 2, 3, 8, 9, 17}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 33}))
    for (const auto kind : all_gradient_kinds) {
      CAPTURE(n);
      CAPTURE(to_string(kind));
      const segments cut(random_segments(n < 10 ? 403 : 131, 5, n));
      const auto g = random_gradients<T>(n, cut.total(), 100 + n, kind);
      // Three duplicates and more merge to their mean; rounding aside, nothing of these kinds cancels.
      const auto out = check_combine(rules::adasum{}, g, cut);
      check_combine(rules::sum{}, g, cut);
      check_combine(rules::mean{}, g, cut);
      std::vector<T> tree(cut.total());
      adasum_tree(exec, g, tree, cut);
      CHECK(same_bits(tree, out));
    }
}

TEST_CASE_TEMPLATE("combine: blocks of many vectors", T, ADASUM_TEST_FORMATS) {
  // 3 vectors are measured in blocks of 1024 elements, 33 in blocks of 64.
  for (const auto& shape : {std::pair<std::size_t, std::size_t>{3, 70001}, {5, 1024}, {5, 9001}, {33, 4097}}) {
    const auto n = shape.first, length = shape.second;
    CAPTURE(n);
    check_combine(rules::adasum{}, random_gradients<T>(n, length, n, gradient_kind::low_rank), segments{0, length, 0});
  }
}

TEST_CASE("out may be any of the gradients") {
  const segments cut{0, 33, 100, 1};
  for (const std::size_t n : sizes{1, 2, 3, 6, 9})
    for (std::size_t which = 0; which < n; ++which) {
      auto g = random_gradients<float>(n, cut.total(), n);
      std::vector<float> out(cut.total());
      adasum_tree(exec, g, out, cut);
      adasum_tree(exec, g, g[which], cut);
      CHECK(same_bits(g[which], out));
    }
}

TEST_CASE("gradients come as any contiguous ranges") {
  const float a[] = {1, 0, 2}, b[] = {0, 4, 0};
  std::array<float, 3> out{};
  adasum_pair(exec, a, b, out);
  CHECK(out == std::array<float, 3>{1, 4, 2});
  adasum_pair(exec, std::span<const float>(a), b, std::span<float>(out), segments{3});
  CHECK(out == std::array<float, 3>{1, 4, 2});
  std::vector<float> result(3);
  const auto found = adasum_tree(exec, std::array{std::span<const float>(a), std::span<const float>(b)}, result);
  CHECK(result == std::vector<float>{1, 4, 2});
  CHECK(found.rule() == "adasum");
  CHECK(found.orthogonality() == doctest::Approx(1));
}

TEST_CASE("sum and mean need no Gram matrix when the report may do without") {
  const auto g = random_gradients<float>(3, 100, 1);
  std::vector<float> measured(100), unmeasured(100);
  const auto choices = options{.measure = measuring::when_needed};
  CHECK(combine(exec, g, measured, rules::mean{}, segments{100}).measured());
  const auto found = combine(exec, g, unmeasured, rules::mean{}, segments{100}, choices);
  CHECK_FALSE(found.measured());
  CHECK(std::isnan(found.norm(0, 0)));
  CHECK(std::isnan(found.orthogonality()));
  CHECK(same_bits(measured, unmeasured));
  CHECK(combine(exec, g, measured, rules::adasum{}, segments{100}, choices).measured());
}

TEST_CASE("rounds of short segments: the bits of each segment by itself, in place too") {
  // Empty ones at the cuts, one that is longer than a round, more segments than a round has.
  std::vector<std::size_t> lengths(130, 3);
  lengths[63] = lengths[64] = 0;
  lengths[70] = 100000;
  lengths[71] = 40000;
  const segments cut(lengths);
  for (const std::size_t n : {2u, 3u}) {
    const auto g = random_gradients<float>(n, cut.total(), 11);
    std::vector<float> expected(cut.total());
    for (std::size_t k = 0; k < cut.size(); ++k) {
      std::vector<std::span<const float>> alone;
      for (const auto& one : g) alone.push_back(std::span(one).subspan(cut.offset(k), cut.length(k)));
      combine(serial_space{}, alone, std::span(expected).subspan(cut.offset(k), cut.length(k)), rules::adasum{});
    }
    auto in_place = g;
    combine(serial_space{}, in_place, in_place[1], rules::adasum{}, cut);
    std::vector<float> apart(cut.total());
    combine(serial_space{}, g, apart, rules::adasum{}, cut);
    CHECK(std::memcmp(apart.data(), expected.data(), apart.size() * sizeof(float)) == 0);
    CHECK(std::memcmp(in_place[1].data(), expected.data(), apart.size() * sizeof(float)) == 0);
  }
}

}  // namespace test_of_combine
