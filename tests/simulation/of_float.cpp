// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "run.hpp"

namespace adasum::test {

simulated_verdict run_case_of_float(const simulated_case& one) { return run_case<float>(one); }

}  // namespace adasum::test
