// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <doctest/doctest.h>

#include "eigen_scalars.hpp"
#include "scalars.hpp"

/// The scalar types under test. Two lists for TEST_CASE_TEMPLATE:
/// ADASUM_TEST_SCALARS has every type, ADASUM_TEST_FORMATS one of each bit layout (kernels look at nothing else).
#ifdef ADASUM_TEST_EIGEN
#define ADASUM_TEST_EIGEN_SCALARS , Eigen::half, Eigen::bfloat16
#else
#define ADASUM_TEST_EIGEN_SCALARS
#endif
#if ADASUM_HAS_FLOAT16
#define ADASUM_TEST_COMPILER_HALF , _Float16
#else
#define ADASUM_TEST_COMPILER_HALF
#endif
#if defined(ADASUM_TEST_EIGEN)
#define ADASUM_TEST_FORMATS double, float, Eigen::half, Eigen::bfloat16
#else
#define ADASUM_TEST_FORMATS double, float ADASUM_TEST_COMPILER_HALF
#endif
#define ADASUM_TEST_SCALARS double, float ADASUM_TEST_COMPILER_HALF ADASUM_TEST_EIGEN_SCALARS

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
