// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <adasum/rules/any_rule.hpp>
#include <string>
#include <string_view>

/// The rule that --rule names. AdaCons is scaled back to the gradients' mean norm, since the learning rate is the same for
/// all; its control, unit_mean, takes steps of unit vectors as it is.
/// @throws std::invalid_argument  there is none of this name; the message says which there are
adasum::rules::any_rule rule_of(std::string_view name);

/// "adasum, sum, mean, …"
std::string rule_names();
