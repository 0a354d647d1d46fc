// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <doctest/doctest.h>

#include "scalars.hpp"

/// Names of the scalars under test, for doctest's templates.
TYPE_TO_STRING(double);
TYPE_TO_STRING(float);
#ifdef ADASUM_TEST_EIGEN
TYPE_TO_STRING(Eigen::half);
TYPE_TO_STRING(Eigen::bfloat16);
#endif
#if ADASUM_HAS_FLOAT16
TYPE_TO_STRING(_Float16);
#endif
