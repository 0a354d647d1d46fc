// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <vector>

#include "scenario.hpp"

namespace adasum::test::model {

/// What a rank does in a run, as recording.hpp says.
using sequence = std::vector<std::string>;

/// What the ranks of a scenario do.
struct recorded {
  std::vector<std::vector<sequence>> ranks;  ///< of each, what it does before its runs, in each of them, and after them
  std::string problem;                       ///< empty: none
};

/// Of the model's ranks.
recorded record_model(const scenario& one);
/// Of reductions of the library's that do the same.
/// @param without_faults  the same without faults, for a scenario that has one
recorded record_library(const scenario& one, const recorded& without_faults = {});

}  // namespace adasum::test::model
