// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include <adasum/core/concepts.hpp>
#include <adasum/core/optional_members.hpp>
#include <adasum/rules/adasum.hpp>
#include <adasum/rules/adasum_linear.hpp>
#include <adasum/rules/any_rule.hpp>
#include <adasum/rules/mean.hpp>
#include <adasum/rules/sum.hpp>

#include "definition.hpp"

/// A rule of all gradients, or along the tree, as one type each, whichever of the library's it is: what is compiled for these
/// two, and for adasum_linear, serves all rules. They ask for whatever some rule asks for, which does no harm to the others
/// where gradients are finite.
namespace adasum::test {

struct erased_gram_rule {
  static constexpr inner_products needs = inner_products::distances;
  rules::any_rule held;
  std::string_view name = held.name;

  bool whole_model() const { return held.whole_model(); }
  int degree() const { return held.degree(); }
  std::vector<double> parameters() const { return held.parameters(); }
  void operator()(gram_view gram, std::span<double> weights, std::size_t segment) { held(gram, weights, segment); }
};

struct erased_tree_rule {
  std::variant<rules::adasum, rules::sum, rules::mean> held;
  std::string_view name = std::visit([](const auto& rule) { return rule.name; }, held);

  std::vector<double> parameters() const { return {static_cast<double>(held.index())}; }
  pair_weights operator()(const pair_gram& gram) const noexcept {
    return std::visit([&](const auto& rule) { return rule(gram); }, held);
  }
};

inline real_vector defined(const erased_tree_rule& rule, const defined_problem& problem) {
  return std::visit([&](const auto& held) { return defined(held, problem); }, rule.held);
}

/// visit(rule, held): the rule as one of three types; and as it is.
template <class Visitor>
auto visit_erased(const rules::any_rule& any, Visitor&& visit) {
  if (const auto* const rule = any.target<rules::adasum>()) return visit(erased_tree_rule{*rule}, *rule);
  if (const auto* const rule = any.target<rules::sum>()) return visit(erased_tree_rule{*rule}, *rule);
  if (const auto* const rule = any.target<rules::mean>()) return visit(erased_tree_rule{*rule}, *rule);
  if (const auto* const rule = any.target<rules::adasum_linear>()) return visit(*rule, *rule);
  return visit(erased_gram_rule{any}, any);
}

}  // namespace adasum::test
