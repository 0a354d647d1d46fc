// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/core/error.hpp>
#include <adasum/core/options_text.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <string>

namespace test_of_core_options_text {

using namespace adasum;

TEST_CASE("options by a text: those that it names are set, the others stay") {
  basic_options<true> choices{.check_agreement = false, .nonfinite = nonfinite_policy::raise};
  read_options(choices, "");
  CHECK(choices == basic_options<true>{.check_agreement = false, .nonfinite = nonfinite_policy::raise});
  read_options(choices, "wire=binary16");
  CHECK(choices == basic_options<true>{
                       .check_agreement = false, .nonfinite = nonfinite_policy::raise, .wire = wire_format::binary16});
  read_options(choices,
               "check_agreement=yes,measure=when_needed,nonfinite=exclude,wire=bfloat16,timeout=0.5,keep_plan=no");
  CHECK(choices == basic_options<true>{.check_agreement = true,
                                       .measure = measuring::when_needed,
                                       .nonfinite = nonfinite_policy::exclude,
                                       .wire = wire_format::bfloat16,
                                       .timeout = std::chrono::milliseconds(500),
                                       .keep_plan = false});
  read_options(choices, "check_agreement=no,measure=always,nonfinite=propagate,wire=same,timeout=60,keep_plan=yes");
  CHECK(choices == basic_options<true>{.check_agreement = false});
  read_options(choices, "nonfinite=raise");
  CHECK(choices.nonfinite == nonfinite_policy::raise);
}

TEST_CASE("options by a text: what there is not is refused") {
  basic_options<false> choices;
  CHECK_THROWS_WITH_AS(read_options(choices, "time=1"),
                       "adasum: the options: there is no 'time'; there are check_agreement, measure, nonfinite, wire, "
                       "timeout, keep_plan",
                       bad_input);
  CHECK_THROWS_WITH_AS(read_options(choices, "wire=float"),
                       "adasum: the options: wire is 'float'; it must be same or bfloat16 or binary16", bad_input);
}

}  // namespace test_of_core_options_text
