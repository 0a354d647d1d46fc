// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstring>

/// Vectors of a chosen number of bytes, by the vector extension of GCC and clang: explicit vectors on every target,
/// with no library and no compiler flag. Arguments go by reference and every function is inlined, so the code takes
/// the instruction set of the kernel entry (instruction_set.hpp) that it is used from.
namespace adasum::serial {

template <class L, std::size_t Bytes>
struct vector_type {
  typedef L type __attribute__((vector_size(Bytes)));
};

/// A vector of Bytes / sizeof(L) lanes.
template <class L, std::size_t Bytes>
using vector = typename vector_type<L, Bytes>::type;

template <class To, class From>
[[gnu::always_inline]] inline void bit_copy(To& to, const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  __builtin_memcpy(&to, &from, sizeof(To));
}

/// where(mask, a, b): a in the lanes where the mask's bits are set, b in the others.
template <class V>
[[gnu::always_inline]] inline void where(V& out, const V& mask, const V& a, const V& b) {
  out = (mask & a) | (~mask & b);
}

/// The same number in all lanes.
template <class V, class L>
[[gnu::always_inline]] inline void broadcast(V& out, L value) {
  out = value - V{};  // keeps the sign of a zero
}

#if defined(__x86_64__) && !defined(__clang__) && !defined(__NVCC__)
#define ADASUM_FUSES_EXPLICITLY 1
#else
#define ADASUM_FUSES_EXPLICITLY 0
#endif

/// sum += a · b, rounded once in registers of 32 bytes and more. Left to itself, GCC fuses a product and a sum in one
/// place and not in another, or of two products now this one and now that one; the bits of an element would depend on
/// its way through a kernel. (clang fuses by expression.)
template <class L, std::size_t Bytes>
[[gnu::always_inline]] inline void add_product(vector<L, Bytes>& sum, const vector<L, Bytes>& a,
                                               const vector<L, Bytes>& b) {
#if ADASUM_FUSES_EXPLICITLY
  vector<L, Bytes> fused = sum, left = a, right = b;  // operands that are no variables would stay in memory
  if constexpr (Bytes >= 32 && sizeof(L) == sizeof(float))
    asm("vfmadd231ps {%2, %1, %0|%0, %1, %2}" : "+v"(fused) : "v"(left), "vm"(right));
  else if constexpr (Bytes >= 32)
    asm("vfmadd231pd {%2, %1, %0|%0, %1, %2}" : "+v"(fused) : "v"(left), "vm"(right));
  else
    fused += left * right;
  sum = fused;
#else
  sum += a * b;
#endif
}

/// For what was read from memory, and is a factor more than once: GCC would read it again for each add_product.
template <class V>
[[gnu::always_inline]] inline void keep_in_register(V& value) {
#if ADASUM_FUSES_EXPLICITLY
  V kept = value;
  asm("" : "+v"(kept));
  value = kept;
#else
  (void)value;
#endif
}

#undef ADASUM_FUSES_EXPLICITLY

/// Σ of the lanes of doubles: halves are added until one lane is left.
template <std::size_t Bytes>
[[gnu::always_inline]] inline double sum_of_lanes(const vector<double, Bytes>& lanes) {
  if constexpr (Bytes == 2 * sizeof(double)) {
    return lanes[0] + lanes[1];
  } else {
    vector<double, Bytes / 2> low, high;
    __builtin_memcpy(&low, &lanes, Bytes / 2);
    __builtin_memcpy(&high, reinterpret_cast<const char*>(&lanes) + Bytes / 2, Bytes / 2);
    return sum_of_lanes<Bytes / 2>(low + high);
  }
}

}  // namespace adasum::serial
