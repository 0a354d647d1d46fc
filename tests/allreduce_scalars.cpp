// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include "support/doctest_scalars.hpp"
#include "support/random_gradients.hpp"
#include "support/thread_reduction.hpp"

namespace test_of_allreduce_scalars {

using namespace adasum::test;

TEST_CASE_TEMPLATE("every schedule and rule agrees with the oracle", T, ADASUM_TEST_SCALARS) {
  check_reductions<T>({1, 2, 3, 4, 7, 8, 9}, {5, 130});
}

}  // namespace test_of_allreduce_scalars
