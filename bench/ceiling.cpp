// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ceiling.hpp"

namespace ceiling {
namespace {

#if defined(__AVX512F__)
constexpr std::size_t vector_bytes = 64;
#elif defined(__AVX__)
constexpr std::size_t vector_bytes = 32;
#else
constexpr std::size_t vector_bytes = 16;
#endif
constexpr std::size_t lanes = vector_bytes / sizeof(float);
/// Vectors of each stream in flight, so that no addition waits for the one before. Divides 128 elements at any width.
constexpr std::size_t unroll = 8;
typedef float vector __attribute__((vector_size(vector_bytes)));

const vector& at(const float* x) { return *reinterpret_cast<const vector*>(x); }
vector& at(float* x) { return *reinterpret_cast<vector*>(x); }

}  // namespace

float read(const float* a, const float* b, std::size_t length) {
  vector sum_a[unroll] = {}, sum_b[unroll] = {};
  for (std::size_t i = 0; i < length; i += unroll * lanes) {
#pragma GCC unroll 8
    for (std::size_t u = 0; u < unroll; ++u) {
      sum_a[u] += at(a + i + u * lanes);
      sum_b[u] += at(b + i + u * lanes);
    }
  }
  float sum = 0;
  for (std::size_t u = 0; u < unroll; ++u)
    for (std::size_t lane = 0; lane < lanes; ++lane) sum += sum_a[u][lane] + sum_b[u][lane];
  return sum;
}

void triad(float* a, const float* b, float s, float t, std::size_t length) {
  const vector scale_a = vector{} + s, scale_b = vector{} + t;
  for (std::size_t i = 0; i < length; i += unroll * lanes) {
#pragma GCC unroll 8
    for (std::size_t u = 0; u < unroll; ++u) {
      vector& out = at(a + i + u * lanes);
      out = scale_a * out + scale_b * at(b + i + u * lanes);
    }
  }
}

}  // namespace ceiling
