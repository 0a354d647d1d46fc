// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/combine.hpp>
#include <adasum/detail/arguments.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/pair.hpp>
#include <adasum/rules/mean.hpp>
#include <adasum/schedules/recursive_halving.hpp>
#include <adasum/tree.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <vector>

namespace test_of_detail_arguments {

/// The arguments that follow the data of a call, in any order.

using namespace adasum;

namespace {

/// What a call makes of its arguments.
struct understood {
  std::vector<std::size_t> offsets;
  std::string_view rule;
  std::size_t radix;
  options choices;
  friend bool operator==(const understood&, const understood&) = default;
};

template <class A = detail::unnamed_options, class B = detail::unnamed_options, class C = detail::unnamed_options,
          class D = detail::unnamed_options>
understood call(A&& a = {}, B&& b = {}, C&& c = {}, D&& d = {}) {
  static_assert(detail::are_arguments<detail::taken_arguments{}, A, B, C, D>());
  const std::size_t whole[] = {0, 9};
  const auto offsets = detail::segments_or(segments_view{whole}, a, b, c, d).offsets();
  const auto rule = detail::argument_or<detail::argument::rule>(rules::adasum{}, a, b, c, d);
  const auto order = detail::argument_or<detail::argument::schedule>(schedules::recursive_halving{}, a, b, c, d);
  return {{offsets.begin(), offsets.end()}, rule.name, order.radix, detail::options_among("call", a, b, c, d)};
}

const segments cut{4, 5};
const rules::mean mean;
const schedules::recursive_halving halving{.radix = 8};
const options choices{.check_agreement = false, .wire = wire_format::bfloat16};

}  // namespace

TEST_CASE("nothing given: the whole gradient and the defaults") {
  CHECK(call() == understood{{0, 9}, "adasum", 2, options{}});
}

TEST_CASE("one of each, alone") {
  CHECK(call(cut) == understood{{0, 4, 9}, "adasum", 2, options{}});
  CHECK(call(segments_view{cut}) == call(cut));
  CHECK(call(segments{4, 5}) == call(cut));
  CHECK(call(mean) == understood{{0, 9}, "mean", 2, options{}});
  CHECK(call(halving) == understood{{0, 9}, "adasum", 8, options{}});
  CHECK(call(choices) == understood{{0, 9}, "adasum", 2, choices});
}

TEST_CASE("all four, in every order") {
  const understood all{{0, 4, 9}, "mean", 8, choices};
  int orders = 0;
  const auto check = [&](const understood& got) {
    ++orders;
    CHECK(got == all);
  };
  // Each argument at each place, the other three behind it in every order.
  const auto three = [&](const auto& a, const auto& b, const auto& c, const auto& d) {
    check(call(a, b, c, d));
    check(call(a, b, d, c));
    check(call(a, c, b, d));
    check(call(a, c, d, b));
    check(call(a, d, b, c));
    check(call(a, d, c, b));
  };
  three(cut, mean, halving, choices);
  three(mean, cut, halving, choices);
  three(halving, cut, mean, choices);
  three(choices, cut, mean, halving);
  CHECK(orders == 24);
}

TEST_CASE("options in braces, at any place") {
  const understood expected{{0, 4, 9}, "mean", 2, options{.nonfinite = nonfinite_policy::exclude}};
  CHECK(call({.nonfinite = nonfinite_policy::exclude}, cut, mean) == expected);
  CHECK(call(cut, {.nonfinite = nonfinite_policy::exclude}, mean) == expected);
  CHECK(call(cut, mean, {.nonfinite = nonfinite_policy::exclude}) == expected);
  CHECK(call(cut, mean, {.nonfinite = nonfinite_policy::exclude}, {}) == expected);
  const options every{.check_agreement = !options{}.check_agreement,
                      .measure = measuring::when_needed,
                      .nonfinite = nonfinite_policy::raise,
                      .wire = wire_format::binary16,
                      .timeout = std::chrono::milliseconds(1)};
  CHECK(call({.check_agreement = !options{}.check_agreement,
              .measure = measuring::when_needed,
              .nonfinite = nonfinite_policy::raise,
              .wire = wire_format::binary16,
              .timeout = std::chrono::milliseconds(1)})
            .choices == every);
}

TEST_CASE("options given twice, once or both times in braces, are refused when the call runs") {
  const auto twice = doctest::Contains("call: the options are given twice");
  CHECK_THROWS_WITH_AS(call({.wire = wire_format::bfloat16}, {.measure = measuring::when_needed}), twice, bad_input);
  CHECK_THROWS_WITH_AS(call(choices, {.measure = measuring::when_needed}), twice, bad_input);
  CHECK_THROWS_WITH_AS(call({.measure = measuring::when_needed}, mean, choices), twice, bad_input);
}

TEST_CASE("options keep the type that they were given with, whatever NDEBUG is where the library is called") {
  const basic_options<true> checked;
  const basic_options<false> unchecked;
  static_assert(std::is_same_v<decltype(detail::options_among("call", checked)), basic_options<true>>);
  static_assert(std::is_same_v<decltype(detail::options_among("call", unchecked)), basic_options<false>>);
  static_assert(std::is_same_v<decltype(detail::options_among("call", detail::unnamed_options{})), options>);
}

TEST_CASE("an argument is passed on as it was given: an lvalue is not copied") {
  rules::mean mine;
  auto& passed = detail::argument_or<detail::argument::rule>(rules::adasum{}, cut, mine);
  CHECK(&passed == &mine);
  static_assert(
      std::is_same_v<decltype(detail::argument_or<detail::argument::rule>(mine, rules::adasum{})), rules::adasum&&>);
}

TEST_CASE("a plan's segments, or a length") {
  const auto total = [](const detail::segments_or_length& given) {
    return given.visit([](segments_view all) { return all.all().size(); });
  };
  CHECK(total({600, 400}) == 1000);
  CHECK(total({7}) == 7);
  CHECK_THROWS_WITH_AS(total({7, -1}), doctest::Contains("negative length -1"), bad_input);
  const auto count = [](const detail::segments_or_length& given) {
    return given.visit([](segments_view all) { return all.size(); });
  };
  CHECK(total(cut) == 9);
  CHECK(count(cut) == 2);
  CHECK(count(segments_view{cut}) == 2);
  CHECK(total(7) == 7);
  CHECK(count(7u) == 1);
  CHECK(total(std::size_t{0}) == 0);
  CHECK_THROWS_WITH_AS(total(-1), doctest::Contains("the length of a gradient is negative (-1)"), bad_input);
}

TEST_CASE("combine, adasum_pair and adasum_tree") {
  const serial_space exec;
  const std::vector<std::vector<double>> gradients{{3, 0, 5}, {0, 4, 5}};
  const segments parts{2, 1};
  std::vector<double> expected(3), out(3);
  combine(exec, gradients, expected, rules::mean{}, parts, options{.measure = measuring::when_needed});
  CHECK(expected == std::vector<double>{1.5, 2, 5});

  const auto found = combine(exec, gradients, out, {.measure = measuring::when_needed}, parts, rules::mean{});
  CHECK(out == expected);
  CHECK(found.segments() == 2);
  CHECK_FALSE(found.measured());

  CHECK(combine(exec, gradients, out).rule() == "adasum");
  const auto whole = out;
  adasum_tree(exec, gradients, out);
  CHECK(out == whole);
  adasum_pair(exec, gradients[0], gradients[1], out);
  CHECK(out == whole);

  CHECK(combine(exec, gradients, out, parts).segments() == 2);
  const auto in_parts = out;
  CHECK(in_parts == std::vector<double>{3, 4, 5});
  adasum_tree(exec, gradients, out, segments_view{parts});
  CHECK(out == in_parts);
  adasum_pair(exec, gradients[0], gradients[1], out, parts);
  CHECK(out == in_parts);
}

TEST_CASE("errors name the call that was made") {
  const serial_space exec;
  std::vector<std::vector<float>> gradients{{1, 2}, {3, 4, 5}};
  std::vector<float> out(2);
  CHECK_THROWS_WITH_AS(adasum_pair(exec, gradients[0], gradients[1], out), doctest::Contains("adasum::adasum_pair: "),
                       bad_input);
  CHECK_THROWS_WITH_AS(adasum_tree(exec, gradients, out), doctest::Contains("adasum::adasum_tree: "), bad_input);
  CHECK_THROWS_WITH_AS(combine(exec, gradients, out), doctest::Contains("adasum::combine: "), bad_input);
}

}  // namespace test_of_detail_arguments
