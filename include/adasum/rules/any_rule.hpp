// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <variant>

#include "adacons.hpp"
#include "adasum.hpp"
#include "adasum_linear.hpp"
#include "any_gram_rule.hpp"
#include "mean.hpp"
#include "sum.hpp"
#include "unit_mean.hpp"

namespace adasum::rules {

/// Any rule of the library, chosen at run time (rules/named.hpp): one type for each kind of rule that is run in a way of its
/// own. A call that is made for every type of this list (std::visit) is compiled once for each of these types, and not
/// once for each rule.
using any_rule =
    std::variant<adasum, adasum_linear, sum, mean, unit_mean, adacons, any_gram_rule<inner_products::usual, false>,
                 any_gram_rule<inner_products::accurate, false>, any_gram_rule<inner_products::accurate, true>,
                 any_gram_rule<inner_products::distances, true>>;

}  // namespace adasum::rules
