// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <string>
#include <string_view>

#include "../../core/named_values.hpp"
#include "../named.hpp"
#include "aligned_mtl.hpp"
#include "cagrad.hpp"
#include "conflict_free.hpp"
#include "dualproj.hpp"
#include "fairgrad.hpp"
#include "imtl_g.hpp"
#include "min_norm.hpp"
#include "nash_mtl.hpp"
#include "upgrad.hpp"

/// rules/named.hpp, with the rules that need Eigen.
namespace adasum::rules {

/// @cond internal
inline void read_parameters(min_norm& rule, named_values& given) {
  given.read("tolerance", rule.tolerance, number_ranges::from_0);
}
inline void read_parameters(imtl_g& rule, named_values& given) {
  given.read("guard", rule.guard, number_ranges::from_0);
}
inline void read_parameters(upgrad& rule, named_values& given) { given.read("per_segment", rule.per_segment); }
inline void read_parameters(dualproj& rule, named_values& given) { given.read("per_segment", rule.per_segment); }
inline void read_parameters(conflict_free& rule, named_values& given) {
  given.read("guard", rule.guard, number_ranges::from_0);
  given.read("per_segment", rule.per_segment);
}
inline void read_parameters(cagrad& rule, named_values& given) {
  given.read("c", rule.c, number_ranges::from_0);
  given.read("per_segment", rule.per_segment);
}
inline void read_parameters(nash_mtl& rule, named_values& given) {
  given.read("scale", rule.scale, {{"none", nash_mtl::scaling::none}, {"mean_norm", nash_mtl::scaling::mean_norm}});
  given.read("per_segment", rule.per_segment);
}
inline void read_parameters(fairgrad& rule, named_values& given) {
  given.read("alpha", rule.alpha, number_ranges::above_0);
  given.read("per_segment", rule.per_segment);
}
/// @endcond

/// All rules of the library that a text may name.
using rules_with_eigen = rule_list<adasum, adasum_linear, sum, mean, unit_mean, adacons, multi_krum, geometric_median,
                                   centred_clipping, gradient_agreement_filtering, pcgrad, gradvac, min_norm, imtl_g,
                                   aligned_mtl, upgrad, dualproj, conflict_free, cagrad, nash_mtl, fairgrad>;

/// The rule that the text names, of all in the library: see make_rule. @throws bad_input  as make_rule
inline any_rule named_with_eigen(std::string_view text) { return make_rule(text, rules_with_eigen{}); }

/// What named_with_eigen() knows.
inline std::string names_of_rules_with_eigen() { return named_rules::names_of(rules_with_eigen{}); }

}  // namespace adasum::rules
