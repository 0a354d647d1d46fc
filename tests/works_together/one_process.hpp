// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <string_view>
#include <variant>
#include <vector>

#include <adasum/combine.hpp>

#include "combination.hpp"
#include "definition.hpp"
#include "erased_rule.hpp"
#include "findings.hpp"

/// Gradients of one process: every rule, and elements of every type, in one execution space.
namespace adasum::test {

rules::any_rule rule_named(std::string_view text);

/// The result is the rule's combination, but for a few roundings to T of each gradient's elements.
/// @param hold  hold(values): these as a gradient in memory of the space
template <scalar T, class Space, class Rule, class Hold>
bool is_right(const Space& exec, const Rule& rule, const Hold& hold) {
  const segments cut{40, 17, 33};
  const auto gradients = gradients_of_workers<T>(5, cut.total(), 9);
  std::vector<decltype(hold(gradients[0]))> held;
  for (const auto& gradient : gradients) held.push_back(hold(gradient));
  auto out = hold(std::vector<T>(cut.total()));
  combine(exec, held, out, rule, cut);
  std::vector<real_vector> all;
  real square = 0, scale = 0;
  for (const auto& gradient : gradients) {
    all.emplace_back();
    for (const T x : gradient) all.back().push_back(static_cast<real>(to_double(x)));
    scale += norm(all.back());
  }
  const auto expected = definition_of(rule, all, std::vector<std::size_t>(all.size(), 1), cut, {},
                                      [](std::size_t, std::size_t) { return true; });
  for (std::size_t x = 0; x < expected.size(); ++x) {
    const auto off = static_cast<real>(to_double(out.data()[x])) - expected[x];
    square += off * off;
  }
  return std::sqrt(square) <= (8 * rounding_to<T>.unit + 1e-6L) * scale;
}

template <class Space, class Hold>
void try_space(const Space& exec, std::string_view name, findings& found, const Hold& hold) {
  const auto note = [&](std::string_view table, std::string_view row, bool right) {
    CHECK_MESSAGE(right, name << ", " << row);
    found.note(std::string(table), row, name, right ? "right" : "wrong");
    found.count("right");
  };
  for (const auto text : all_rules)
    visit_erased(rule_named(text), [&](const auto& rule, const auto&) {
      note("rules × spaces", text.substr(0, text.find(':')), is_right<float>(exec, rule, hold));
    });
  const rules::adasum adaptive;
  note("elements × spaces", to_string(element::of_float), is_right<float>(exec, adaptive, hold));
  note("elements × spaces", to_string(element::of_double), is_right<double>(exec, adaptive, hold));
  note("elements × spaces", to_string(element::of_half), is_right<Eigen::half>(exec, adaptive, hold));
  note("elements × spaces", to_string(element::of_bfloat16), is_right<Eigen::bfloat16>(exec, adaptive, hold));
}

}  // namespace adasum::test
