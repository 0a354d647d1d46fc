// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#ifndef __CUDACC__
#error "adasum/exec/cuda.hpp holds CUDA kernels: compile this file with nvcc -std=c++20, as CUDA (.cu, or nvcc -x cu)"
#endif

#include "cuda/device.hpp"
#include "cuda/space.hpp"
#include "cuda/vector.hpp"
