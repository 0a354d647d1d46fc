// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "run.hpp"

#include "../support/eigen_scalars.hpp"

namespace adasum::test {

// Without Eigen, no case has this scalar.
simulated_verdict run_case_of_half(const simulated_case& one) {
#ifdef ADASUM_TEST_EIGEN
  return run_case<Eigen::half>(one);
#else
  return run_case<float>(one);
#endif
}

}  // namespace adasum::test
