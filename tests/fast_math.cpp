// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Compiled and linked with -ffast-math, under which the compiler takes it that no number is NaN or infinite, adds in
// any order, and lets the processor take subnormal numbers for zero. What the library promises of Inf and NaN holds,
// and sums are as exact.
#include <adasum/allreduce.hpp>
#include <adasum/combine.hpp>
#include <adasum/communicators/threads.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/pair.hpp>
#include <adasum/rules/adasum.hpp>
#include <adasum/rules/mean.hpp>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#ifndef __FAST_MATH__
#error "this test is about -ffast-math"
#endif

using namespace adasum;

namespace {

/// By their bits, since comparisons mean nothing here.
template <class T>
struct special {
  using bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  static constexpr bits infinity = sizeof(T) == 8 ? static_cast<bits>(0x7ff0000000000000) : bits{0x7f800000};
  static constexpr bits sign = bits{1} << (8 * sizeof(T) - 1);
  static constexpr bits quiet_nan = infinity | infinity >> 1;

  static bool is_nan(T value) { return (std::bit_cast<bits>(value) & ~sign) > infinity; }
  static bool is_finite(T value) { return (std::bit_cast<bits>(value) & ~sign) < infinity; }
  static std::vector<T> all() {
    return {std::bit_cast<T>(quiet_nan), std::bit_cast<T>(quiet_nan | sign), std::bit_cast<T>(infinity),
            std::bit_cast<T>(infinity | sign)};
  }
};

const segments cut{65, 0, 130, 33};
constexpr std::size_t bad_segment = 2, bad_gradient = 1;

template <class T>
std::vector<std::vector<T>> gradients(std::size_t n) {
  std::mt19937 random(static_cast<unsigned>(n));
  std::normal_distribution<double> normal;
  std::vector<std::vector<T>> all(n, std::vector<T>(cut.total()));
  for (auto& gradient : all)
    for (auto& element : gradient) element = static_cast<T>(normal(random));
  return all;
}

/// Gradients of which one holds `bad` in one segment, at one of several places.
template <class T>
std::vector<std::vector<T>> gradients_with(std::size_t n, T bad, std::size_t where) {
  auto all = gradients<T>(n);
  all[bad_gradient][cut.offset(bad_segment) + where] = bad;
  return all;
}

/// NaN throughout the segment with NaN or Inf, and finite elsewhere.
template <class T>
bool only_bad_segment_is_nan(const std::vector<T>& out) {
  for (std::size_t k = 0; k < cut.size(); ++k)
    for (std::size_t x = cut.offset(k); x < cut.offset(k) + cut.length(k); ++x)
      if (k == bad_segment ? !special<T>::is_nan(out[x]) : !special<T>::is_finite(out[x])) return false;
  return true;
}

template <class T>
bool close(const std::vector<T>& left, const std::vector<T>& right) {
  const double tolerance = sizeof(T) == 8 ? 1e-12 : 1e-5;
  for (std::size_t x = 0; x < left.size(); ++x)
    if (!special<T>::is_finite(left[x]) || !special<T>::is_finite(right[x]) ||
        std::abs(static_cast<double>(left[x]) - static_cast<double>(right[x])) > tolerance)
      return false;
  return true;
}

void check_names_the_bad_one(const report& found) {
  CHECK_FALSE(found.finite());
  CHECK(found.nonfinite() == std::vector{nonfinite_input{static_cast<int>(bad_gradient), bad_segment}});
}

options with(nonfinite_policy policy) {
  options choices;
  choices.nonfinite = policy;
  return choices;
}

constexpr std::size_t places[] = {0, 64, 129};

template <class T, class Rule>
void check_combine(Rule rule) {
  const serial_space exec;
  for (const std::size_t n : {2, 3, 5})
    for (const T bad : special<T>::all())
      for (const std::size_t where : places) {
        CAPTURE(n);
        CAPTURE(where);
        const auto g = gradients_with(n, bad, where);
        std::vector<T> out(cut.total());
        check_names_the_bad_one(combine(exec, g, out, rule, cut));
        REQUIRE(only_bad_segment_is_nan(out));

        const auto found = combine(exec, g, out, rule, cut, with(nonfinite_policy::exclude));
        check_names_the_bad_one(found);
        CHECK(found.excluded() == std::vector{static_cast<int>(bad_gradient)});
        auto others = gradients<T>(n);
        others[bad_gradient].assign(cut.total(), T{0});
        std::vector<T> expected(cut.total());
        if constexpr (std::is_same_v<Rule, rules::mean>) others.erase(others.begin() + bad_gradient);
        CHECK(combine(exec, others, expected, rule, cut).finite());
        REQUIRE(close(out, expected));

        CHECK_THROWS_AS(combine(exec, g, out, rule, cut, with(nonfinite_policy::raise)), nonfinite_error);
      }
}

template <class T>
void check_allreduce() {
  const serial_space exec;
  constexpr std::size_t n = 3;
  for (const T bad : special<T>::all())
    for (const std::size_t where : places) {
      CAPTURE(where);
      auto g = gradients_with(n, bad, where);
      std::vector<report> found(n);
      std::vector<int> raised(n);
      const auto on_all_ranks = [&](auto&& reduce) {
        thread_communicator::run(static_cast<int>(n), [&](const thread_communicator& comm) {
          reduce(comm, static_cast<std::size_t>(comm.rank()));
        });
      };
      on_all_ranks([&](const auto& comm, std::size_t rank) {
        try {
          combine_allreduce(exec, comm, g[rank], rules::adasum{}, cut, schedules::automatic{},
                            with(nonfinite_policy::raise));
        } catch (const nonfinite_error&) {
          raised[rank] = 1;
        }
      });
      CHECK(raised == std::vector<int>(n, 1));

      auto propagated = g;
      on_all_ranks([&](const auto& comm, std::size_t rank) {
        found[rank] = combine_allreduce(exec, comm, propagated[rank], rules::adasum{}, cut);
      });
      for (std::size_t rank = 0; rank < n; ++rank) {
        check_names_the_bad_one(found[rank]);
        REQUIRE(only_bad_segment_is_nan(propagated[rank]));
      }

      auto others = gradients<T>(n);
      others[bad_gradient].assign(cut.total(), T{0});
      std::vector<T> expected(cut.total());
      combine(exec, others, expected, rules::adasum{}, cut);
      on_all_ranks([&](const auto& comm, std::size_t rank) {
        found[rank] = combine_allreduce(exec, comm, g[rank], rules::adasum{}, cut, schedules::automatic{},
                                        with(nonfinite_policy::exclude));
      });
      for (std::size_t rank = 0; rank < n; ++rank) {
        check_names_the_bad_one(found[rank]);
        CHECK(found[rank].excluded() == std::vector{static_cast<int>(bad_gradient)});
        REQUIRE(close(g[rank], expected));
      }
    }
}

/// 2^exponent · a and b, which are orthogonal: their adaptive sum is their sum.
template <class T>
void check_pair_of_size(int exponent) {
  std::vector<T> a(100), b(100), out(100), expected(100);
  for (std::size_t x = 0; x < 100; ++x) {
    auto& element = x < 50 ? a[x] : b[x];
    element = expected[x] = static_cast<T>(std::ldexp(1.0 + static_cast<double>(x) / 128, exponent));
  }
  adasum_pair(serial_space{}, a, b, out);
  for (std::size_t x = 0; x < 100; ++x) REQUIRE(std::abs(out[x] / expected[x] - 1) <= (sizeof(T) == 8 ? 1e-14 : 1e-6));
}

}  // namespace

TEST_CASE_TEMPLATE("NaN and Inf in a local combination", T, float, double) {
  check_combine<T>(rules::adasum{});
  check_combine<T>(rules::mean{});
}

TEST_CASE_TEMPLATE("NaN and Inf among ranks", T, float, double) { check_allreduce<T>(); }

TEST_CASE("finite gradients are called so") {
  std::vector<float> out(cut.total());
  CHECK(combine(serial_space{}, gradients<float>(3), out, rules::adasum{}, cut).finite());
}

TEST_CASE("squares that overflow or underflow") {
  for (const int exponent : {-120, -70, 0, 70, 120}) check_pair_of_size<float>(exponent);
  for (const int exponent : {-1000, -600, -520, 0, 520, 1000}) check_pair_of_size<double>(exponent);
}

TEST_CASE("weights that no float holds multiply as exactly") {
  // With a weight rounded to float, the error of a product is up to one unit in the last place; here, to half of one.
  const double weight = 1.0 / 3;
  const segments one{1000};
  std::vector<float> in(1000), out(1000);
  for (std::size_t x = 0; x < 1000; ++x) in[x] = 1 + static_cast<float>(x) / 1000;
  const std::vector<const float*> vectors{in.data()};
  for (const auto set : {instruction_set::avx2, instruction_set::avx512}) {
    if (set > best_instruction_set()) break;
    serial_space(set).mix<float>(whole(one), vectors, &weight, out.data());
    for (std::size_t x = 0; x < 1000; ++x) {
      const double exact = weight * static_cast<double>(in[x]), unit = exact < 0.5 ? 0x1p-25 : 0x1p-24;
      REQUIRE(std::abs(static_cast<double>(out[x]) - exact) <= 0.501 * unit);
    }
  }
}
