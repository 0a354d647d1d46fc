// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/core/error.hpp>
#include <adasum/core/named_values.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace test_of_core_named_values {

using namespace adasum;

namespace {

enum class colour { red, green };

/// All kinds of values, read from a text.
struct values {
  double number = 1.5;
  std::size_t count = 2;
  std::uint64_t seed = 3;
  bool flag = false;
  colour paint = colour::red;
  std::string_view rest;

  explicit values(std::string_view text) {
    named_values given("the test", text, "rest");
    given.read("number", number);
    given.read("count", count);
    given.read("seed", seed);
    given.read("flag", flag);
    given.read("paint", paint, {{"red", colour::red}, {"green", colour::green}});
    given.read("rest", rest);
    given.require_all_read();
  }
};

std::string refusal(std::string_view text) {
  try {
    values read(text);
  } catch (const bad_input& error) {
    return error.what();
  }
  return "taken";
}

}  // namespace

TEST_CASE("named values: what is not given stays as it is") {
  for (const auto* const text : {"", "  ", "\t"}) {
    const values read(text);
    CHECK(read.number == 1.5);
    CHECK(read.count == 2);
    CHECK_FALSE(read.flag);
    CHECK(read.paint == colour::red);
  }
}

TEST_CASE("named values: of every kind, in any order, with blanks") {
  const values read(" flag = yes,seed=18446744073709551615 , paint=green,number=-1e-3,count=0");
  CHECK(read.flag);
  CHECK(read.seed == 18446744073709551615u);
  CHECK(read.paint == colour::green);
  CHECK(read.number == -1e-3);
  CHECK(read.count == 0);
  for (const auto* const yes : {"flag=yes", "flag=true", "flag=1"}) CHECK(values(yes).flag);
  for (const auto* const no : {"flag=no", "flag=false", "flag=0"}) CHECK_FALSE(values(no).flag);
  CHECK(values("number=inf").number > 1e308);
}

TEST_CASE("named values: one that takes the rest") {
  const values read("count=7, rest=a:b=1, c=2 ");
  CHECK(read.count == 7);
  CHECK(read.rest == "a:b=1, c=2");
}

TEST_CASE("named values: what cannot be used is named, and what there is") {
  const std::string all = "number, count, seed, flag, paint, rest";
  CHECK(refusal("colour=red") == "adasum: the test: there is no 'colour'; there are " + all);
  CHECK(refusal("number") == "adasum: the test: 'number' is not of the form name=value");
  CHECK(refusal("number=1,") == "adasum: the test: '' is not of the form name=value");
  CHECK(refusal("=1") == "adasum: the test: '=1' is not of the form name=value");
  CHECK(refusal("number=1,number=1") == "adasum: the test: number is given twice");
  for (const auto* const wrong : {"", "x", "1x", "nan", "1 2", "0x10"})
    CHECK(refusal("number=" + std::string(wrong)) ==
          "adasum: the test: number is '" + std::string(wrong) + "'; it must be a number");
  for (const auto* const wrong : {"-1", "1.5", "1e3", "99999999999999999999"})
    CHECK(refusal("count=" + std::string(wrong)) ==
          "adasum: the test: count is '" + std::string(wrong) + "'; it must be a whole number that is not negative");
  CHECK(refusal("flag=maybe") == "adasum: the test: flag is 'maybe'; it must be yes or no");
  CHECK(refusal("paint=blue") == "adasum: the test: paint is 'blue'; it must be red or green");
  named_values nothing("the rule mean", "x=1");
  CHECK_THROWS_WITH_AS(nothing.require_all_read(),
                       "adasum: the rule mean: there is no 'x'; nothing can be given", bad_input);
}

}  // namespace test_of_core_named_values
