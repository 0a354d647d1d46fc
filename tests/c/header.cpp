// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/adasum.h>

#include <adasum/mpi.hpp>

// C++ programs may call both.
int combine_both(const float* a, const float* b, float* out, std::size_t count) {
  adasum::adasum_pair(adasum::serial_space{}, std::span(a, count), std::span(b, count), std::span(out, count));
  return adasum_pair(a, b, out, count, ADASUM_FLOAT, nullptr, 0);
}
