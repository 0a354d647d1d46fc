// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

/// The baseline: Adasum of two as its definition reads. textbook.cpp is compiled once for each of these builds.
namespace textbook {

struct strict {};     ///< -O3 -march=native
struct fast_math {};  ///< -O3 -march=native -ffast-math

/// a ← (1 - a·b / (2 a·a)) a + (1 - a·b / (2 b·b)) b. Sums and coefficients are doubles, as in the public
/// implementations and in this library.
template <class Build, class T>
void pair(T* a, const T* b, std::size_t length);

}  // namespace textbook
