// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#ifndef __CUDACC__
#error \
    "adasum/exec/cuda.hpp holds CUDA kernels: compile with nvcc -std=c++20 --expt-relaxed-constexpr, or link adasum::cuda"
#endif

#include "cuda/error.hpp"
#include "cuda/space.hpp"
#include "cuda/vector.hpp"
