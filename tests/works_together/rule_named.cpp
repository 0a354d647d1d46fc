// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/rules/eigen/named.hpp>

#include "trials.hpp"

namespace adasum::test {

rules::any_rule rule_named(std::string_view text) { return rules::named_with_eigen(text); }

}  // namespace adasum::test
