// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <adasum/comm/any.hpp>
#include <adasum/rules/any_rule.hpp>

#include "combination.hpp"
#include "findings.hpp"
#include "refusals.hpp"
#include "trial.hpp"

namespace adasum::test {

/// Of all in the library.
rules::any_rule rule_named(std::string_view text);

/// One combination, on one rank of those that all try it. Compiled apart: floats in serial_space, these by hierarchical, and
/// other scalars and spaces.
trial_result try_in_floats(const any_communicator& comm, const setting& where, const combination& one);
trial_result try_by_node(const any_communicator& comm, const setting& where, const combination& one);
trial_result try_in_other_types(const any_communicator& comm, const setting& where, const combination& one);

/// Tries combinations on one rank, in the same order on all of them. What is wrong comes back, with the combination.
/// @param log  a line for each combination and what became of it
std::vector<std::string> try_combinations(const any_communicator& comm, const setting& where,
                                          std::span<const combination> all, findings& found, std::string& log);

}  // namespace adasum::test
