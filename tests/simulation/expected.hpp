// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <adasum/core/optional_members.hpp>
#include <adasum/core/report.hpp>
#include <adasum/core/segments.hpp>
#include <adasum/rules/mean.hpp>
#include <adasum/rules/sum.hpp>

#include "case.hpp"
#include "interrupted.hpp"
#include "support/oracle_errors.hpp"
#include "support/random_gradients.hpp"
#include "support/tree_of_nodes.hpp"

/// What a case reduces, and what must come out of it.
namespace adasum::test {

/// What the oracle calls a rule.
template <class Rule>
using oracle_rule = std::conditional_t<std::same_as<Rule, interrupted_adasum>, rules::adasum, Rule>;
template <class Rule>
inline constexpr bool mixes_units = std::same_as<Rule, interrupted_mean_of_units>;

inline index_range range_of(segments_view cut, std::size_t k) { return cut.range(k); }

template <scalar T>
struct simulated_input {
  explicit simulated_input(const simulated_case& one)
      : cut(random_segments(one.length, one.segments, one.data)),
        gradients(random_gradients<T>(one.ranks, one.length, one.data, all_gradient_kinds[one.kind])) {
    const auto large = range_of(cut, one.data % one.segments);
    if (one.huge != 0)
      for (auto& gradient : gradients)
        for (auto x = large.begin; x < large.end; ++x) gradient[x] = static_cast<T>(to_double(gradient[x]) * 1e170);
    if (one.not_a_number != 0)  // an infinite one is told from a large one vector by vector
      gradients[one.not_a_number - 1][one.data % one.length] =
          one.data % 2 == 0 ? quiet_nan<T>() : static_cast<T>(std::numeric_limits<double>::infinity());
    for (std::uint64_t r = 0; one.nodes != 0 && r < one.ranks; ++r)
      nodes.push_back(static_cast<int>((one.data % 2 == 0 ? r : r * one.nodes / one.ranks) % one.nodes));
  }

  segments cut;
  std::vector<std::vector<T>> gradients;
  std::vector<int> nodes;
};

/// Bounds hold for ‖result − values‖₂ of each segment.
struct simulated_expectation {
  real_vector values;
  std::vector<real> bounds;
  bool raises = false;           ///< all ranks throw a nonfinite_error
  std::vector<bool> is_nan;      ///< segments whose elements are all NaN
  std::vector<bool> unknown;     ///< segments of which that is not known
  bool unknown_on_wire = false;  ///< of all segments, if anything is rounded on its way
  bool may_overflow_on_wire = false;
};

/// Each gradient's unit vector, and the mean of these over so many.
template <scalar T>
void expect_units(const std::vector<std::vector<T>>& gradients, const segments& cut, real count,
                  simulated_expectation& found) {
  found.values.assign(cut.total(), 0);
  for (std::size_t k = 0; k < cut.size(); ++k) {
    const auto range = range_of(cut, k);
    real mass = 0;
    for (const auto& leaf : oracle_leaves(gradients, range)) {
      const real length = norm(leaf.value);
      if (length == 0) continue;
      mass += 1 / count;
      for (std::size_t x = 0; x < leaf.value.size(); ++x)
        found.values[range.begin + x] += leaf.value[x] / (length * count);
    }
    // A weight is off by as much as a norm.
    const auto n = static_cast<real>(gradients.size());
    const real eta = inner_product_error<T>(2, range.size()) + (n + 16) * unit_of_double;
    found.bounds.push_back(mass * eta + mix_error<T>(gradients.size(), mass, mass, static_cast<real>(range.size())));
  }
}

/// Whether what 16-bit messages round stays small: not where a vector is the rest of others that cancel, whose error it has,
/// nor where elements are beyond the ends of binary16. (Few: bfloat16 has the range of float.)
inline bool is_known_on_wire(const simulated_case& one) {
  const auto kind = all_gradient_kinds[one.kind];
  return one.wire == 0 || kind == gradient_kind::independent || kind == gradient_kind::near_parallel ||
         kind == gradient_kind::duplicate || kind == gradient_kind::with_zeros ||
         (kind == gradient_kind::scaled && static_cast<wire_format>(one.wire) == wire_format::bfloat16);
}
/// Elements of other kinds are below 1, and a rule's sum of 130 below 65504. But for rounding, no vector on its way is
/// longer than all gradients together: what Adasum makes of two is at most √(‖a‖² + ‖b‖²) long.
template <scalar T>
bool may_overflow_on_wire(const simulated_case& one, const std::vector<std::vector<T>>& gradients) {
  if (static_cast<wire_format>(one.wire) != wire_format::binary16 ||
      all_gradient_kinds[one.kind] != gradient_kind::scaled)
    return false;
  real length = 0;
  for (const auto& leaf : oracle_leaves(gradients, {0, one.length})) length += norm(leaf.value);
  return 2 * length >= 65504;
}

/// On its way down the tree a vector is rounded at each of at most log₂ n + 1 levels, and once on its way back. That moves the
/// result by as much as a sum of the vectors, and once more by way of the weights, each of two vectors' three products.
/// @param units  the rule mixes unit vectors, and has so many
template <scalar T>
void allow_for_wire(const simulated_case& one, const std::vector<std::vector<T>>& gradients, const segments& cut,
                    std::optional<real> units, simulated_expectation& found) {
  if (one.wire == 0) return;
  const real unit = static_cast<wire_format>(one.wire) == wire_format::bfloat16 ? 0x1p-9L : 0x1p-12L;
  const real tiny = 0x1p-25L;  // half of binary16's smallest number
  const auto n = static_cast<real>(gradients.size());
  for (std::size_t k = 0; k < cut.size(); ++k) {
    real mass = 0;
    for (const auto& leaf : oracle_leaves(gradients, range_of(cut, k))) mass += units ? 1 / *units : norm(leaf.value);
    found.bounds[k] += 4 * (std::log2(n) + 2) * (unit * mass + n * tiny * std::sqrt(static_cast<real>(cut.length(k))));
  }
}

template <scalar T, class Rule>
simulated_expectation expectation_of(const simulated_case& one, const simulated_input<T>& input) {
  const auto policy = static_cast<nonfinite_policy>(one.nonfinite);
  const bool excludes = one.not_a_number != 0 && policy == nonfinite_policy::exclude;
  auto gradients = input.gradients;
  if (one.not_a_number != 0) {
    auto& bad = gradients[one.not_a_number - 1];
    if (excludes)
      bad.assign(bad.size(), T{});
    else
      bad[one.data % one.length] = T{};
  }
  simulated_expectation found;
  const auto taking_part = static_cast<real>(one.ranks - (excludes ? 1 : 0));
  if constexpr (mixes_units<Rule>) {
    expect_units(gradients, input.cut, taking_part, found);
  } else {
    const auto order = static_cast<simulated_order>(one.order);
    const bool by_node = order == simulated_order::automatic || order == simulated_order::by_messages ||
                         order == simulated_order::levels_of_nodes;
    auto oracle = oracle_with_errors<T>(oracle_rule<Rule>{}, gradients, input.cut,
                                        tree_of_nodes{by_node ? input.nodes : std::vector<int>()});
    for (std::size_t k = 0; k < input.cut.size(); ++k)
      found.bounds.push_back(oracle.gram_error[k] + oracle.pairwise_error[k]);
    found.values = std::move(oracle.values);
    if (std::same_as<Rule, rules::mean> && excludes && taking_part > 0) {
      const real factor = static_cast<real>(one.ranks) / taking_part;
      for (auto& value : found.values) value *= factor;
      for (auto& bound : found.bounds) bound *= 2 * factor;
    }
  }
  allow_for_wire(one, gradients, input.cut, mixes_units<Rule> ? std::optional(taking_part) : std::nullopt, found);
  found.raises = one.not_a_number != 0 && policy == nonfinite_policy::raise;
  found.is_nan.resize(input.cut.size());
  found.unknown.resize(input.cut.size());
  found.unknown_on_wire = !is_known_on_wire(one);
  found.may_overflow_on_wire = may_overflow_on_wire(one, gradients);
  if (one.not_a_number != 0 && policy == nonfinite_policy::propagate)
    for (std::size_t k = 0; k < input.cut.size(); ++k) {
      const auto range = range_of(input.cut, k);
      const auto x = one.data % one.length;
      const bool holds = range.begin <= x && x < range.end;
      const bool measured = one.when_needed == 0 || needs_gram<Rule>;
      found.is_nan[k] = holds && measured;
      if (holds && !measured) found.unknown[k] = true;
    }
  return found;
}

/// What is wrong with a result; empty if nothing is.
template <scalar T>
std::string problem_with(const std::vector<T>& result, const simulated_expectation& expected, const segments& cut,
                         const report& found) {
  const bool unknown_on_wire = expected.unknown_on_wire && found.wire() != wire_format::same;
  for (std::size_t k = 0; k < cut.size(); ++k) {
    const auto range = range_of(cut, k);
    real_vector difference;
    bool all_nan = true, all_finite = true;
    for (std::size_t x = range.begin; x < range.end; ++x) {
      const auto value = static_cast<real>(to_double(result[x]));
      all_nan = all_nan && std::isnan(value);
      all_finite = all_finite && std::isfinite(value);
      difference.push_back(value - expected.values[x]);
    }
    if (expected.is_nan[k] && !all_nan) return "segment " + std::to_string(k) + " is not all NaN";
    if (expected.is_nan[k] || expected.unknown[k]) continue;
    if (unknown_on_wire) {
      if (!all_finite && !expected.may_overflow_on_wire)
        return "segment " + std::to_string(k) + " is not finite, and nothing can have overflowed on the wire";
      continue;
    }
    if (const real error = norm(difference); !(error <= expected.bounds[k]))
      return "segment " + std::to_string(k) + " is off by " + std::to_string(static_cast<double>(error)) + ", bound " +
             std::to_string(static_cast<double>(expected.bounds[k]));
  }
  return {};
}

}  // namespace adasum::test
