// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <adasum/communicators/any.hpp>
#include <adasum/rules/any_rule.hpp>

#include "combination.hpp"
#include "findings.hpp"
#include "refusals.hpp"
#include "trial.hpp"

namespace adasum::test {

/// Of all in the library.
rules::any_rule rule_named(std::string_view text);

/// One combination, on one rank of those that all try it. Compiled apart, and only what stands for the rest: every call
/// under rules along the tree and rules of all gradients (every_call.hpp); plans under the other rules, by hierarchical, and
/// of other scalars.
template <class Rule>
trial_result try_every_call(const any_communicator& comm, const setting& where, const combination& one, const Rule& rule);
trial_result try_plan_of_floats(const any_communicator& comm, const setting& where, const combination& one);
trial_result try_plan_by_node(const any_communicator& comm, const setting& where, const combination& one);
trial_result try_plan_of_other_types(const any_communicator& comm, const setting& where, const combination& one);

/// Tries combinations on one rank, in the same order on all of them. What is wrong comes back, with the combination.
std::vector<std::string> try_combinations(const any_communicator& comm, const setting& where,
                                          std::span<const combination> all, findings& found);

}  // namespace adasum::test
