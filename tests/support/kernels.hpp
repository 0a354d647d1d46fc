// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <adasum/exec/serial.hpp>
#include <adasum/exec/serial/compiled.hpp>

#include "scalars.hpp"

/// The serial kernels of every scalar under test, declared here and compiled in kernels.cpp alone: they are most of what a
/// test would compile otherwise. Every test is told to include this first.
#ifdef ADASUM_TEST_EIGEN
#define ADASUM_TEST_EIGEN_KERNELS(EXTERN)        \
  ADASUM_SERIAL_KERNELS(EXTERN, Eigen::half)     \
  ADASUM_SERIAL_SUMS(EXTERN, Eigen::half)        \
  ADASUM_SERIAL_KERNELS(EXTERN, Eigen::bfloat16) \
  ADASUM_SERIAL_SUMS(EXTERN, Eigen::bfloat16)
#else
#define ADASUM_TEST_EIGEN_KERNELS(EXTERN)
#endif
#define ADASUM_TEST_KERNELS(EXTERN) \
  ADASUM_COMPILED_KERNELS(EXTERN)   \
  ADASUM_TEST_EIGEN_KERNELS(EXTERN)

namespace adasum::detail::serial {
ADASUM_TEST_KERNELS(extern)
}
