// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "../core/concepts.hpp"
#include "../core/error.hpp"
#include "../core/named_values.hpp"
#include "adacons.hpp"
#include "adasum.hpp"
#include "adasum_linear.hpp"
#include "any_rule.hpp"
#include "centred_clipping.hpp"
#include "geometric_median.hpp"
#include "gradient_agreement_filtering.hpp"
#include "gradvac.hpp"
#include "mean.hpp"
#include "multi_krum.hpp"
#include "nearest_neighbour_mixing.hpp"
#include "pcgrad.hpp"
#include "sum.hpp"
#include "unit_mean.hpp"

/// Rules that are chosen at run time, by a text.
namespace adasum::rules {

/// Sets the members of a rule that were given by name; the names are those of the members. This one is for rules without
/// parameters. A rule of yours that make_rule is to know has one in its namespace: `given.read("radius", rule.radius)` for each
/// member.
template <rule Rule>
  requires std::is_empty_v<Rule>
void read_parameters(Rule&, named_values&) {}

/// @cond internal
void read_parameters(adacons& rule, named_values& given);
void read_parameters(centred_clipping& rule, named_values& given);
void read_parameters(geometric_median& rule, named_values& given);
void read_parameters(gradient_agreement_filtering& rule, named_values& given);
void read_parameters(gradvac& rule, named_values& given);
void read_parameters(multi_krum& rule, named_values& given);
void read_parameters(pcgrad& rule, named_values& given);
/// @endcond

/// The rules that make_rule knows.
template <rule... Rules>
struct rule_list {};
/// The rules of <adasum/adasum.hpp> that a text may name.
using usual_rules = rule_list<adasum, adasum_linear, sum, mean, unit_mean, adacons, multi_krum, geometric_median,
                              centred_clipping, gradient_agreement_filtering, pcgrad, gradvac>;

/// @cond internal
namespace named_rules {  // the parts of make_rule

inline constexpr std::string_view mixing = "nearest_neighbour_mixing";

/// Before and after the colon, if there is one.
inline std::pair<std::string_view, std::string_view> cut(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) return {text, {}};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

template <rule... Rules>
std::string names_of(rule_list<Rules...>) {
  std::string names;
  ((names += std::string(Rules::name) + ", "), ...);
  return names.append(mixing);
}

/// The rule that is given, as the text says.
/// @param byzantine  of nearest_neighbour_mixing, if it is mixed before; else null
template <rule Rule>
any_rule made_as(std::string_view name, std::string_view parameters, const std::size_t* byzantine) {
  Rule made;
  named_values given("the rule " + std::string(name), parameters);
  read_parameters(made, given);
  given.require_all_read();
  if (byzantine != nullptr) return nearest_neighbour_mixing<Rule>{.byzantine = *byzantine, .rule = std::move(made)};
  return made;
}

/// The rule of the list that the text names.
template <rule... Rules>
any_rule find(rule_list<Rules...> list, std::string_view text, const std::size_t* byzantine = nullptr) {
  const auto [name, parameters] = cut(text);
  any_rule (*make)(std::string_view, std::string_view, const std::size_t*) = nullptr;
  ((make = name == Rules::name ? &made_as<Rules> : make), ...);
  constexpr bool are_usual = std::is_same_v<rule_list<Rules...>, usual_rules>;
  if (make == nullptr)
    throw bad_input({"adasum: there is no rule '", name, "'; there are ", names_of(list),
                     are_usual ? "; rules/eigen/named.hpp has more" : ""});
  return make(name, parameters, byzantine);
}

}  // namespace named_rules
/// @endcond

/// The rule that the text names, from a list of rules. The text is the rule's name and, after a colon, its parameters in the
/// form that named_values reads. Parameters have the names of the rule's members.
///
///     "adasum"   "centred_clipping:radius=2,per_segment=yes"
///     "nearest_neighbour_mixing:byzantine=1,rule=multi_krum:byzantine=1,selected=3"
///
/// nearest_neighbour_mixing takes another rule, with that rule's own parameters; it must come last.
/// @throws bad_input  a rule or a parameter does not exist, or a value cannot be used; the message lists what exists
template <rule... Rules>
any_rule make_rule(std::string_view text, rule_list<Rules...> list) {
  const auto [name, parameters] = named_rules::cut(text);
  if (name != named_rules::mixing) return named_rules::find(list, text);
  named_values given("the rule " + std::string(name), parameters, "rule");
  std::size_t byzantine = 0;
  given.read("byzantine", byzantine);
  std::string_view mixed;
  if (!given.read("rule", mixed))
    throw bad_input({"adasum: the rule ", name,
                     " needs another rule to apply afterwards: give it last, as in rule=geometric_median; there are ",
                     named_rules::names_of(list)});
  given.require_all_read();
  return named_rules::find(list, mixed, &byzantine);
}

/// The rule that the text names, among those in <adasum/adasum.hpp>. (rules/eigen/named.hpp knows all rules.) Pass it to a
/// plan or a call:
///
///     auto rule = rules::named(text);
///     combine_allreduce(exec, comm, gradient, rule, segs);
///
/// @throws bad_input  as make_rule
any_rule named(std::string_view text);

/// "adasum, adasum_linear, …": what named() knows.
std::string names_of_rules();

}  // namespace adasum::rules

#if ADASUM_DEFINITIONS

namespace adasum::rules {

ADASUM_INLINE void read_parameters(adacons& rule, named_values& given) {
  given.read("momentum", rule.momentum, number_ranges::from_0_below_1);
  given.read("epsilon", rule.epsilon, number_ranges::from_0);
  given.read("scale", rule.scale, {{"none", adacons::scaling::none}, {"mean_norm", adacons::scaling::mean_norm}});
  given.read("guard", rule.guard, number_ranges::from_0);
  given.read("unsorting", rule.unsorting,
             {{"inverse", adacons::unsort::inverse}, {"as_published", adacons::unsort::as_published}});
  given.read("per_segment", rule.per_segment);
}

ADASUM_INLINE void read_parameters(centred_clipping& rule, named_values& given) {
  given.read("radius", rule.radius, number_ranges::from_0);
  given.read("iterations", rule.iterations);
  given.read("per_segment", rule.per_segment);
}

ADASUM_INLINE void read_parameters(geometric_median& rule, named_values& given) {
  given.read("smoothing", rule.smoothing, number_ranges::above_0);
  given.read("iterations", rule.iterations);
  given.read("per_segment", rule.per_segment);
}

ADASUM_INLINE void read_parameters(gradient_agreement_filtering& rule, named_values& given) {
  using averages = gradient_agreement_filtering::averages;
  given.read("threshold", rule.threshold, number_ranges::from_0_to_2);
  given.read("averaging", rule.averaging, {{"mean", averages::mean}, {"halves", averages::halves}});
  given.read("per_segment", rule.per_segment);
}

ADASUM_INLINE void read_parameters(gradvac& rule, named_values& given) {
  given.read("beta", rule.beta, number_ranges::from_0_to_1);
  given.read("target", rule.target);
  given.read("epsilon", rule.epsilon, number_ranges::from_0);
  given.read("seed", rule.seed);
  given.read("average", rule.average);
  given.read("per_segment", rule.per_segment);
}

ADASUM_INLINE void read_parameters(multi_krum& rule, named_values& given) {
  using neighbourhood = multi_krum::neighbourhood;
  using metric = multi_krum::metric;
  given.read("byzantine", rule.byzantine);
  given.read("selected", rule.selected);
  given.read("neighbours", rule.neighbours, {{"krum", neighbourhood::krum}, {"byzfl", neighbourhood::byzfl}});
  given.read("distance", rule.distance, {{"squared", metric::squared}, {"plain", metric::plain}});
  given.read("per_segment", rule.per_segment);
}

ADASUM_INLINE void read_parameters(pcgrad& rule, named_values& given) {
  given.read("seed", rule.seed);
  given.read("average", rule.average);
  given.read("per_segment", rule.per_segment);
}

ADASUM_INLINE any_rule named(std::string_view text) { return make_rule(text, usual_rules{}); }

ADASUM_INLINE std::string names_of_rules() { return named_rules::names_of(usual_rules{}); }

}  // namespace adasum::rules
#endif
