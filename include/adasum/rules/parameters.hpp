// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <type_traits>

#include "../core/concepts.hpp"
#include "../core/named_values.hpp"
#include "adacons.hpp"
#include "centred_clipping.hpp"
#include "geometric_median.hpp"
#include "gradient_agreement_filtering.hpp"
#include "gradvac.hpp"
#include "multi_krum.hpp"
#include "pcgrad.hpp"

/// read_parameters(rule, given) sets the members of a rule that were given by name; the names are those of the members.
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

}  // namespace adasum::rules

#if ADASUM_DEFINITIONS

namespace adasum::rules {

ADASUM_INLINE void read_parameters(adacons& rule, named_values& given) {
  given.read("momentum", rule.momentum);
  given.read("epsilon", rule.epsilon);
  given.read("scale", rule.scale, {{"none", adacons::scaling::none}, {"mean_norm", adacons::scaling::mean_norm}});
  given.read("guard", rule.guard);
  given.read("unsorting", rule.unsorting,
             {{"inverse", adacons::unsort::inverse}, {"as_published", adacons::unsort::as_published}});
  given.read("per_segment", rule.per_segment);
}

ADASUM_INLINE void read_parameters(centred_clipping& rule, named_values& given) {
  given.read("radius", rule.radius);
  given.read("iterations", rule.iterations);
  given.read("per_segment", rule.per_segment);
}

ADASUM_INLINE void read_parameters(geometric_median& rule, named_values& given) {
  given.read("smoothing", rule.smoothing);
  given.read("iterations", rule.iterations);
  given.read("per_segment", rule.per_segment);
}

ADASUM_INLINE void read_parameters(gradient_agreement_filtering& rule, named_values& given) {
  using averages = gradient_agreement_filtering::averages;
  given.read("threshold", rule.threshold);
  given.read("averaging", rule.averaging, {{"mean", averages::mean}, {"halves", averages::halves}});
  given.read("per_segment", rule.per_segment);
}

ADASUM_INLINE void read_parameters(gradvac& rule, named_values& given) {
  given.read("beta", rule.beta);
  given.read("target", rule.target);
  given.read("epsilon", rule.epsilon);
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

}  // namespace adasum::rules
#endif
