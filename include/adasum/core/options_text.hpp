// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <chrono>
#include <string_view>

#include "named_values.hpp"
#include "options.hpp"

namespace adasum {

/// The options that a text names, for programs and languages that choose them at run time: "nonfinite=exclude, wire=bfloat16".
/// The names are those of the members and their values (core/options.hpp); the timeout is in seconds. What the text does not
/// name stays as it is.
/// @throws bad_input  there is no such option, or its value cannot be used; says what there is
template <bool CheckedByDefault>
void read_options(basic_options<CheckedByDefault>& choices, std::string_view text) {
  named_values given("the options", text);
  given.read("check_agreement", choices.check_agreement);
  given.read("measure", choices.measure, {{"always", measuring::always}, {"when_needed", measuring::when_needed}});
  given.read("nonfinite", choices.nonfinite,
             {{"propagate", nonfinite_policy::propagate},
              {"exclude", nonfinite_policy::exclude},
              {"raise", nonfinite_policy::raise}});
  given.read("wire", choices.wire,
             {{"same", wire_format::same}, {"bfloat16", wire_format::bfloat16}, {"binary16", wire_format::binary16}});
  double seconds = choices.timeout.count();
  given.read("timeout", seconds);
  choices.timeout = std::chrono::duration<double>(seconds);
  given.read("keep_plan", choices.keep_plan);
  given.require_all_read();
}

}  // namespace adasum
