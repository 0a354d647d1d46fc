// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <adasum/comm/threads.hpp>
#include <adasum/compiled.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/exec/serial/compiled.hpp>

#include "scalars.hpp"

/// The serial kernels of every scalar under test, and what runs reductions among threads, declared here and compiled in
/// kernels.cpp alone: they are most of what a test would compile otherwise. Every test is told to include this first.
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

#define ADASUM_TEST_REDUCTIONS(EXTERN)                       \
  ADASUM_COMPILED_CALLS(EXTERN)                              \
  ADASUM_COMPILED_ENGINE(EXTERN, thread_communicator, float) \
  ADASUM_COMPILED_ENGINE(EXTERN, thread_communicator, double)

namespace adasum::detail::serial {
ADASUM_TEST_KERNELS(extern)
}
namespace adasum {
ADASUM_TEST_REDUCTIONS(extern)
}
