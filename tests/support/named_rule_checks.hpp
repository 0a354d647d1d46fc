// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include <adasum/combine.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/rules/named.hpp>

#include "random_gradients.hpp"

namespace adasum::test {

/// Whether the rule that `named(text)` gives does what the other does: the same name, parameters and degree, and in two
/// calls, one after the other, results of the same bits and reports of the same numbers.
template <class Named, class Rule>
void check_named(const Named& named, std::string_view text, Rule expected) {
  CAPTURE(text);
  auto rule = named(text);
  const auto gradients = random_gradients<float>(5, 90, 3);
  const segments cut{40, 0, 50};
  CHECK(rule.template target<Rule>() != nullptr);
  CHECK(rule.name == expected.name);
  CHECK(degree_of(rule) == degree_of(expected));
  CHECK(parameters_of(rule) == parameters_of(expected));
  CHECK(detail::rule_ref(rule).weighs_whole_model() == detail::rule_ref(expected).weighs_whole_model());
  for (int call = 0; call < 2; ++call) {
    std::vector<float> out(90), right(90);
    const auto a = combine(serial_space{}, gradients, out, cut, rule);
    const auto b = combine(serial_space{}, gradients, right, cut, expected);
    CHECK(out == right);
    CHECK(a.rule() == b.rule());
    CHECK(a.fallbacks() == b.fallbacks());
    for (std::size_t k = 0; k < cut.size(); ++k)
      for (std::size_t i = 0; i < gradients.size(); ++i) CHECK(a.weight(i, k) == b.weight(i, k));
  }
}

/// What `named(text)` says in refusing the text.
template <class Named>
std::string refusal_of(const Named& named, std::string_view text) {
  try {
    named(text);
  } catch (const bad_input& error) {
    return error.what();
  }
  return "taken";
}

}  // namespace adasum::test
