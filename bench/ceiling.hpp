// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

/// What the machine can move, measured beside the kernels: no pair can be faster than one read of both vectors and then
/// one triad, which reads both and writes one. Vectors of the processor's full width, unrolled, no call but this one.
namespace ceiling {

/// Σ a + Σ b. @pre a and b are aligned to 64 bytes, length is a multiple of 128
float read(const float* a, const float* b, std::size_t length);

/// a ← s·a + t·b. @pre as above
void triad(float* a, const float* b, float s, float t, std::size_t length);

}  // namespace ceiling
