// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>

#include "case.hpp"

namespace adasum::test {

/// What came of a case.
struct simulated_verdict {
  std::string problem;  ///< empty: nothing is wrong
  bool came = false;    ///< whether what was to go wrong did
  bool timed_out =
      false;  ///< whether nobody could go on, and only a timeout would have ended it: see may_need_a_timeout
  bool had_errors = false;  ///< whether a rank threw, or did not come as far as others
  std::uint64_t trace = 0;  ///< a hash of all turns, messages and results
};

// Each compiled by itself: of_float.cpp and so on.
simulated_verdict run_case_of_float(const simulated_case& one);
simulated_verdict run_case_of_double(const simulated_case& one);
simulated_verdict run_case_of_half(const simulated_case& one);

}  // namespace adasum::test
