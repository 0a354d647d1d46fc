// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Closed forms and identities of adasum(a, b).
#include <adasum/exec/serial.hpp>
#include <adasum/pair.hpp>

#include <array>
#include <cmath>
#include <vector>

#include "support/doctest_scalars.hpp"
#include "support/oracle_errors.hpp"
#include "support/random_gradients.hpp"

namespace test_of_pair {

using namespace adasum;
using namespace adasum::test;

namespace {

template <class T>
std::vector<T> pair_of(const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<T> out(a.size());
  adasum_pair(serial_space{}, a, b, out);
  return out;
}

template <class T>
real_vector exactly(const std::vector<T>& values) {
  real_vector result;
  for (const T value : values) result.push_back(static_cast<real>(to_double(value)));
  return result;
}

/// The norm of what a correct adasum_pair may be off by.
template <class T>
real error_bound(const std::vector<T>& a, const std::vector<T>& b) {
  const std::array both{a, b};
  return oracle_with_errors<T>(rules::adasum{}, both, segments{a.size()}).gram_error[0];
}

real distance(const real_vector& a, const real_vector& b) {
  real_vector difference(a.size());
  for (std::size_t x = 0; x < a.size(); ++x) difference[x] = a[x] - b[x];
  return norm(difference);
}

template <class T>
std::vector<T> scaled(const std::vector<T>& a, double factor) {
  std::vector<T> result;
  for (const T value : a) result.push_back(from_double<T>(factor * to_double(value)));
  return result;
}

/// A product of Householder reflections: an orthogonal matrix that mixes all components.
class rotation {
 public:
  rotation(std::size_t length, std::uint64_t seed) {
    uniform_numbers uniform(seed);
    for (auto& mirror : mirrors_) {
      for (const double value : uniform.vector(length)) mirror.push_back(static_cast<real>(value));
    }
  }
  real_vector operator()(real_vector v) const {
    for (const auto& mirror : mirrors_) {
      const real factor = 2 * dot(mirror, v) / dot(mirror, mirror);
      for (std::size_t x = 0; x < v.size(); ++x) v[x] -= factor * mirror[x];
    }
    return v;
  }

 private:
  std::array<real_vector, 4> mirrors_;
};

constexpr std::size_t length = 301;  // no multiple of any vector width

}  // namespace

TEST_CASE_TEMPLATE("published literals", T, ADASUM_TEST_SCALARS) {
  // The test values of the widely used implementation; its tolerances. bfloat16 has 8 bits: one rounding of 8.8.
  const auto out =
      pair_of(from_doubles<T>(std::array{4.0, 5.0, 6.0, 7.0}), from_doubles<T>(std::array{8.0, 9.0, 10.0, 11.0}));
  const std::array expected{6.2643, 7.1228, 7.9812, 8.8397};
  const double tolerance = format_of<T> == number_format::bfloat16 ? 8.8397 * 0x1p-8 : is_16_bit<T> ? 5e-3 : 1e-4;
  for (std::size_t x = 0; x < expected.size(); ++x) CHECK(std::abs(to_double(out[x]) - expected[x]) <= tolerance);
}

TEST_CASE_TEMPLATE("orthogonal gradients are added, exactly", T, ADASUM_TEST_SCALARS) {
  SUBCASE("of disjoint support") {
    auto a = random_gradients<T>(1, length, 1)[0], b = random_gradients<T>(1, length, 2)[0];
    std::vector<T> expected;
    for (std::size_t x = 0; x < length; ++x) {
      (x % 2 == 0 ? a : b)[x] = T{};
      expected.push_back(x % 2 == 0 ? b[x] : a[x]);
    }
    CHECK(exactly(pair_of(a, b)) == exactly(expected));
  }
  SUBCASE("rows of a Hadamard matrix") {
    std::vector<T> a, b, expected;
    for (unsigned x = 0; x < 256; ++x) {
      const double p = __builtin_parity(x & 5u) ? -1 : 1, q = __builtin_parity(x & 99u) ? -3 : 3;
      a.push_back(from_double<T>(p));
      b.push_back(from_double<T>(q));
      expected.push_back(from_double<T>(p + q));
    }
    CHECK(exactly(pair_of(a, b)) == exactly(expected));
  }
}

TEST_CASE_TEMPLATE("collinear gradients are averaged, whatever their scale and sign", T, ADASUM_TEST_SCALARS) {
  const auto a = random_gradients<T>(1, length, 3)[0];
  for (const double scale : {1.0, -1.0, 2.0, -2.0, 0.25, -0.25, 64.0, -1.0 / 64}) {  // a·scale is exact
    CAPTURE(scale);
    const auto b = scaled(a, scale);
    real_vector mean;
    for (std::size_t x = 0; x < length; ++x) mean.push_back(static_cast<real>((1 + scale) / 2 * to_double(a[x])));
    CHECK(distance(exactly(pair_of(a, b)), mean) <= error_bound(a, b));
  }
}

TEST_CASE_TEMPLATE("a zero gradient is neutral, exactly", T, ADASUM_TEST_SCALARS) {
  const auto a = random_gradients<T>(1, length, 4)[0];
  const std::vector<T> zero(length, T{});
  CHECK(exactly(pair_of(a, zero)) == exactly(a));
  CHECK(exactly(pair_of(zero, a)) == exactly(a));
  CHECK(exactly(pair_of(zero, zero)) == exactly(zero));
}

TEST_CASE_TEMPLATE("homogeneous of degree one", T, ADASUM_TEST_SCALARS) {
  const auto g = random_gradients<T>(2, length, 5);
  const auto unscaled = exactly(pair_of(g[0], g[1]));
  for (const double factor : {-1.0, 2.0, 8.0, -16.0}) {
    CAPTURE(factor);
    const auto out = exactly(pair_of(scaled(g[0], factor), scaled(g[1], factor)));
    // A power of two changes no significand, so results can only differ where the smaller one is subnormal.
    const auto grain = static_cast<real>(std::abs(factor)) * 2 * rounding_to<T>.tiny;
    for (std::size_t x = 0; x < length; ++x)
      REQUIRE(std::abs(out[x] - static_cast<real>(factor) * unscaled[x]) <= grain);
  }
}

TEST_CASE_TEMPLATE("symmetric", T, ADASUM_TEST_SCALARS) {
  for (const auto kind : all_gradient_kinds) {
    CAPTURE(to_string(kind));
    const auto g = random_gradients<T>(2, length, 6, kind);
    CHECK(distance(exactly(pair_of(g[0], g[1])), exactly(pair_of(g[1], g[0]))) <= 2 * error_bound(g[0], g[1]));
  }
}

TEST_CASE_TEMPLATE("rotating the inputs rotates the result", T, ADASUM_TEST_SCALARS) {
  const rotation rotate(length, 7);
  const auto g = random_gradients<T>(2, length, 8);
  const auto rotated = [&](const std::vector<T>& v) {
    std::vector<T> result;
    for (const real value : rotate(exactly(v))) result.push_back(from_double<T>(static_cast<double>(value)));
    return result;
  };
  const auto a = rotated(g[0]), b = rotated(g[1]);
  // Rounding the rotated inputs moves them by u‖a‖ and u‖b‖. The derivative of adasum(a, b) by a is no longer than
  // 3/2 + 2‖b‖/‖a‖ (differentiate each term and apply Cauchy-Schwarz), so the result moves by at most
  // 7/2·u(‖a‖ + ‖b‖); rounding passes through double, and 1 more for that and the rotation's own rounding.
  const auto moved = 4.5L * rounding_to<T>.unit * (norm(exactly(a)) + norm(exactly(b)));
  CHECK(distance(exactly(pair_of(a, b)), rotate(exactly(pair_of(g[0], g[1])))) <=
        moved + error_bound(a, b) + error_bound(g[0], g[1]));
}

TEST_CASE_TEMPLATE("norm and inner product of the result", T, ADASUM_TEST_SCALARS) {
  for (const auto kind : {gradient_kind::independent, gradient_kind::near_parallel, gradient_kind::opposed}) {
    CAPTURE(to_string(kind));
    const auto g = random_gradients<T>(2, length, 9, kind);
    const auto a = exactly(g[0]), b = exactly(g[1]), out = exactly(pair_of(g[0], g[1]));
    const real aa = dot(a, a), bb = dot(b, b), ab = dot(a, b), c = ab / std::sqrt(aa * bb);
    const real off = error_bound(g[0], g[1]);
    CHECK(std::abs(dot(out, a) - (aa * (1 - c * c / 2) + ab / 2)) <= off * norm(a));
    const real square = (aa + bb) * (1 - c * c * 3 / 4) + std::sqrt(aa * bb) * c * c * c / 2;
    CHECK(std::abs(dot(out, out) - square) <= off * (2 * norm(out) + off));
    CHECK(norm(out) <= std::sqrt(aa + bb) + off);
  }
}

TEST_CASE("expectation over pairs of independent gradients: (2I - M) E[g], M = E[g g'/|g|^2]") {
  constexpr std::size_t dimension = 6;
  uniform_numbers uniform(10);
  const auto draw = [&] {
    std::vector<double> g = uniform.vector(dimension);
    for (std::size_t x = 0; x < dimension; ++x) g[x] += 0.3 * static_cast<double>(x);
    return g;
  };
  /// g (g·of) / ‖g‖²
  const auto projected = [](const std::vector<double>& g, const std::vector<double>& of, std::size_t x) {
    double dot_product = 0, square = 0;
    for (std::size_t y = 0; y < dimension; ++y) {
      dot_product += g[y] * of[y];
      square += g[y] * g[y];
    }
    return g[x] * dot_product / square;
  };

  SUBCASE("exactly, for a distribution on few points, by all pairs of them") {
    constexpr std::size_t points = 9;
    std::vector<std::vector<double>> g;
    std::vector<double> mean(dimension), all_pairs(dimension), expected(dimension);
    for (std::size_t i = 0; i < points; ++i) {
      g.push_back(draw());
      for (std::size_t x = 0; x < dimension; ++x) mean[x] += g[i][x] / points;
    }
    for (std::size_t x = 0; x < dimension; ++x) {
      expected[x] = 2 * mean[x];
      for (const auto& point : g) expected[x] -= projected(point, mean, x) / points;
    }
    for (const auto& first : g)
      for (const auto& second : g) {
        const auto out = pair_of(first, second);
        for (std::size_t x = 0; x < dimension; ++x) all_pairs[x] += out[x] / (points * points);
      }
    // Sums of 81 terms of size at most 8, each off by a few roundings of double.
    for (std::size_t x = 0; x < dimension; ++x) CHECK(std::abs(all_pairs[x] - expected[x]) <= 8 * 100 * 0x1p-53);
  }

  SUBCASE("by sampling a continuous distribution") {
    constexpr std::size_t samples = 20000;
    std::vector<double> sum(dimension), squares(dimension), mean(dimension);
    for (std::size_t x = 0; x < dimension; ++x) mean[x] = 0.3 * static_cast<double>(x);
    for (std::size_t i = 0; i < samples; ++i) {
      // M is sampled apart from the pairs, so both sides are independent; z has expectation 0.
      const auto out = pair_of(draw(), draw());
      const auto other = draw();
      for (std::size_t x = 0; x < dimension; ++x) {
        const double z = out[x] - (2 * mean[x] - projected(other, mean, x));
        sum[x] += z;
        squares[x] += z * z;
      }
    }
    // The mean of z is normal by the central limit theorem: outside 5 standard errors once in 1.7 million draws.
    for (std::size_t x = 0; x < dimension; ++x) {
      const double error = sum[x] / samples, deviation = std::sqrt(squares[x] / samples);
      CHECK(std::abs(error) <= 5 * deviation / std::sqrt(double{samples}));
    }
  }
}

}  // namespace test_of_pair
