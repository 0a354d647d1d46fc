// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// The kernels, and what runs reductions among threads, are declared here and compiled in kernels.cpp alone: they are most
/// of what a test would compile otherwise. Every test is told to include this first.
#ifndef ADASUM_COMPILED
#define ADASUM_COMPILED
#endif

#include <adasum/comm/threads.hpp>
#include <adasum/compiled.hpp>
#include <adasum/exec/serial.hpp>

#include "scalars.hpp"

#define ADASUM_TEST_REDUCTIONS(EXTERN)                       \
  ADASUM_COMPILED_ENGINE(EXTERN, thread_communicator, float) \
  ADASUM_COMPILED_ENGINE(EXTERN, thread_communicator, double)

namespace adasum {
ADASUM_TEST_REDUCTIONS(extern)
}
