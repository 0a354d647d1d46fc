// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "combination.hpp"
#include "findings.hpp"

namespace adasum::test {

/// They are what is committed as found/<program>.txt, if all combinations were tried.
inline void check_findings(const findings& found, const std::string& program) {
  if (!wanted_combinations().empty()) return;
  const auto difference = found.difference_from(ADASUM_FOUND "/" + program + ".txt");
  CHECK_MESSAGE(difference.empty(), difference);
}

/// What one rank has found, in trying combinations.
struct rank_findings {
  findings found;
  std::vector<std::string> wrong;
};

/// None of the ranks has found anything wrong.
inline void check_ranks(const std::vector<rank_findings>& ranks) {
  for (const auto& rank : ranks)
    for (const auto& problem : rank.wrong) CHECK_MESSAGE(problem.empty(), problem);
}

}  // namespace adasum::test
