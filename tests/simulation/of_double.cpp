// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "run.hpp"

namespace adasum::test {

simulated_verdict run_case_of_double(const simulated_case& one) { return run_case<double>(one); }

}  // namespace adasum::test
