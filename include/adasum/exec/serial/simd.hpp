// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

/// Vectors of a chosen number of bytes, by the vector extension of GCC and clang: explicit vectors on every target,
/// with no library and no compiler flag. Arguments go by reference and every function is inlined, so the code takes
/// the instruction set of the kernel entry (instruction_set.hpp) that it is used from.
namespace adasum::detail::serial {

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

/// Integers as long as L.
template <class L>
using lane_integer = std::conditional_t<sizeof(L) == 4, std::int32_t, std::int64_t>;
template <class L, std::size_t Bytes>
using lane_mask = vector<lane_integer<L>, Bytes>;

/// 0, 1, 2, …
template <class Integer, std::size_t Count>
struct numbers {
  constexpr numbers() : of{} {
    for (std::size_t i = 0; i < Count; ++i) of[i] = static_cast<Integer>(i);
  }
  alignas(Count * sizeof(Integer)) Integer of[Count];
};

/// All bits of the first `count` lanes.
template <class L, std::size_t Bytes>
[[gnu::always_inline]] inline void first_lanes(lane_mask<L, Bytes>& mask, std::size_t count) {
  static constexpr numbers<lane_integer<L>, Bytes / sizeof(L)> in_order;
  lane_mask<L, Bytes> lane;
  __builtin_memcpy(&lane, in_order.of, Bytes);
  mask = lane < static_cast<lane_integer<L>>(count);
}

/// The same number in all lanes.
template <class V, class L>
[[gnu::always_inline]] inline void broadcast(V& out, L value) {
#if defined(__clang__) || defined(__NVCC__)
  out = value - V{};  // keeps the sign of a zero
#else                 // GCC 12 would make of that one instruction for each lane of 64 bytes
  V first = {};
  first[0] = value;
  out = __builtin_shuffle(first, decltype(first < first){});
#endif
}

// Whether this header says where products and sums are fused (see add_product), and how.
#if defined(__clang__) || defined(__NVCC__)
#define ADASUM_FUSES_BY_COMPILER 1
#elif defined(__x86_64__)
#define ADASUM_FUSES_AS_X86 1
#elif defined(__aarch64__)
#define ADASUM_FUSES_AS_ARM 1
#endif

#if defined(__NVCC__) && defined(__ASSOCIATIVE_MATH__) && !defined(ADASUM_COMPILED)
#error "adasum: nvcc with -ffast-math for the host would reorder sums; leave it out, or link adasum::compiled"
#endif

/// With -ffast-math, too, this value is made first, and what follows works on it as it is. Otherwise w·a + (v - w)·a
/// would become v·a, where w holds what float holds of v; and sums whose bits must not depend on where vectors lie
/// would be added in one order here and in another there.
template <class V>
[[gnu::always_inline]] inline void keep_order(V& value) {
#if defined(__clang__) && defined(__FAST_MATH__) && defined(__x86_64__)
  value = __arithmetic_fence(value);
#elif defined(__ASSOCIATIVE_MATH__) && !defined(__clang__) && !defined(__NVCC__) && __GNUC__ >= 12
  value = __builtin_assoc_barrier(value);
#else
  (void)value;
#endif
}

/// A product that is rounded before anything is added to it.
template <std::floating_point L>
[[gnu::always_inline]] inline L not_fused(L product) {
#if defined(__powerpc__) || defined(__s390__) || defined(__riscv)  // in a loop that becomes vectors, a barrier is lost
  asm("" : "+f"(product));
#endif
  return product;
}
/// The same of a vector.
template <class V>
[[gnu::always_inline]] inline V not_fused(V product) {
#if !defined(__clang__) && (defined(__s390__) || defined(__riscv) || (defined(__powerpc__) && !defined(__VSX__)))
  // Where registers hold one number, GCC makes many of a vector, and a barrier is lost, too.
  for (std::size_t i = 0; i < sizeof(V) / sizeof(product[0]); ++i) product[i] = not_fused(product[i]);
  return product;
#elif !defined(__clang__) && !defined(__NVCC__) && __GNUC__ >= 12
  return __builtin_assoc_barrier(product);
#else
  return product;
#endif
}

/// sum += a · b, rounded once in registers of 32 bytes and more, and on aarch64. Left to itself, GCC fuses a product and a sum
/// in one place and not in another, or of two products now this one and now that one; the bits of an element would depend on
/// its way through a kernel. (clang fuses by expression.) On powerpc, s390 and riscv, where it might, nothing
/// is fused; others are not known to.
template <class L, std::size_t Bytes>
[[gnu::always_inline]] inline void add_product(vector<L, Bytes>& sum, const vector<L, Bytes>& a,
                                               const vector<L, Bytes>& b) {
  keep_order(sum);
#if defined(ADASUM_FUSES_BY_COMPILER)
  sum += a * b;
#elif defined(ADASUM_FUSES_AS_X86)
  vector<L, Bytes> fused = sum, left = a, right = b;  // operands that are no variables would stay in memory
  if constexpr (Bytes >= 32 && sizeof(L) == sizeof(float))
    asm("vfmadd231ps {%2, %1, %0|%0, %1, %2}" : "+v"(fused) : "v"(left), "vm"(right));
  else if constexpr (Bytes >= 32)
    asm("vfmadd231pd {%2, %1, %0|%0, %1, %2}" : "+v"(fused) : "v"(left), "vm"(right));
  else
    fused += left * right;
  sum = fused;
#elif defined(ADASUM_FUSES_AS_ARM)
  vector<L, Bytes> fused = sum;
  if constexpr (sizeof(L) == sizeof(float))
    asm("fmla %0.4s, %1.4s, %2.4s" : "+w"(fused) : "w"(a), "w"(b));
  else
    asm("fmla %0.2d, %1.2d, %2.2d" : "+w"(fused) : "w"(a), "w"(b));
  sum = fused;
#else
  sum = not_fused(sum) + not_fused(a * b);  // the sum may be a product, too
#endif
}

/// sum += a · b, where the sum is no product itself: GCC fuses that wherever add_product does, and is kept from it elsewhere.
template <class L, std::size_t Bytes>
[[gnu::always_inline]] inline void add_only_product(vector<L, Bytes>& sum, L a, const vector<L, Bytes>& b) {
#if defined(ADASUM_FUSES_BY_COMPILER) || defined(ADASUM_FUSES_AS_X86) || defined(ADASUM_FUSES_AS_ARM)
  sum += a * b;
#else
  sum += not_fused(a * b);
#endif
}

/// For what was read from memory, and is a factor more than once: GCC would read it again for each add_product.
template <class V>
[[gnu::always_inline]] inline void keep_in_register(V& value) {
#if defined(ADASUM_FUSES_AS_X86)
  V kept = value;
  asm("" : "+v"(kept));
  value = kept;
#else
  (void)value;
#endif
}

#undef ADASUM_FUSES_BY_COMPILER
#undef ADASUM_FUSES_AS_X86
#undef ADASUM_FUSES_AS_ARM

/// Halves are added until two lanes are left.
template <std::size_t Bytes>
[[gnu::always_inline]] inline void add_halves(vector<double, 16>& out, const vector<double, Bytes>& lanes) {
  if constexpr (Bytes == 16) {
    out = lanes;
  } else {
    vector<double, Bytes / 2> low, high;
    __builtin_memcpy(&low, &lanes, Bytes / 2);
    __builtin_memcpy(&high, reinterpret_cast<const char*>(&lanes) + Bytes / 2, Bytes / 2);
    low += high;
    keep_order(low);
    add_halves<Bytes / 2>(out, low);
  }
}

/// Σ of the lanes of doubles: halves are added until one lane is left.
template <std::size_t Bytes>
[[gnu::always_inline]] inline double sum_of_lanes(const vector<double, Bytes>& lanes) {
  vector<double, 16> two;
  add_halves<Bytes>(two, lanes);
  return two[0] + two[1];
}

/// The same of two vectors at once.
template <std::size_t Bytes>
[[gnu::always_inline]] inline void sums_of_lanes(vector<double, 16>& out, const vector<double, Bytes>& first,
                                                 const vector<double, Bytes>& second) {
  vector<double, 16> a, b, even, odd;
  add_halves<Bytes>(a, first);
  add_halves<Bytes>(b, second);
  even[0] = a[0], even[1] = b[0];
  odd[0] = a[1], odd[1] = b[1];
  out = even + odd;
}

}  // namespace adasum::detail::serial
