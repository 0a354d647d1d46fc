// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "../../core/scalar.hpp"
#include "simd.hpp"

/// How kernels read and write elements: as vectors of the type in which they are multiplied.
namespace adasum::detail::serial {

/// What kernels take elements of a format for, whatever their type is. (They read and write memory by its bytes.)
template <number_format Format>
using element = std::conditional_t<Format == number_format::binary64, double,
                                   std::conditional_t<Format == number_format::binary32, float, half_bits<Format>>>;

// Conversions that aarch64 makes in one instruction, where GCC 12 takes vectors of 8 bytes apart into their elements.
// (<arm_neon.h> has names for these instructions, but is larger than what it would serve.)
#if defined(__aarch64__) && !defined(__AARCH64EB__) && !defined(__NVCC__)  // no compiler takes what nvcc makes of these
inline constexpr bool has_neon = true;

/// The lower half of a vector, or all of one of 8 bytes, with lanes of twice the bytes.
template <class V>
[[gnu::always_inline]] inline void widen_by_neon(vector<double, 16>& out, const V& floats) {
  asm("fcvtl %0.2d, %1.2s" : "=w"(out) : "w"(floats));
}
template <class V>
[[gnu::always_inline]] inline void widen_by_neon(vector<std::uint32_t, 16>& out, const V& integers) {
  asm("uxtl %0.4s, %1.4h" : "=w"(out) : "w"(integers));
}
/// The upper half.
[[gnu::always_inline]] inline void widen_upper_by_neon(vector<double, 16>& out, const vector<float, 16>& floats) {
  asm("fcvtl2 %0.2d, %1.4s" : "=w"(out) : "w"(floats));
}

/// Between float and IEEE binary16.
[[gnu::always_inline]] inline void from_binary16_by_neon(vector<float, 16>& out, const vector<std::uint16_t, 8>& bits) {
  asm("fcvtl %0.4s, %1.4h" : "=w"(out) : "w"(bits));
}
/// Rounded to nearest even.
[[gnu::always_inline]] inline void to_binary16_by_neon(vector<std::uint16_t, 8>& out, const vector<float, 16>& value) {
  asm("fcvtn %0.4h, %1.4s" : "=w"(out) : "w"(value));
}
#else
inline constexpr bool has_neon = false;  // then nothing calls any of these
#endif

// Conversions between floats and 16-bit numbers, for processors without instructions for them.

/// IEEE binary16 → binary32, exactly.
template <std::size_t Bytes>
[[gnu::always_inline]] inline void from_binary16(vector<float, Bytes>& out, const vector<std::uint32_t, Bytes>& bits) {
  using words = vector<std::uint32_t, Bytes>;
  const words sign = (bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
  // Shifted into place, the exponent is 112 too small. A subnormal number has no leading one: it is put into the
  // fraction of 2^-14, which is subtracted again. (A multiplication by 2^112 would do for all, but not where subnormal
  // floats count as zero.)
  const words normal = (magnitude << 13) + (112u << 23);
  vector<float, Bytes> value;
  bit_copy(value, words(normal + (1u << 23)));
  value -= 0x1p-14f;
  words subnormal, is_subnormal, special, result;
  bit_copy(subnormal, value);
  bit_copy(is_subnormal, magnitude < 0x0400u);
  bit_copy(special, magnitude >= 0x7c00u);
  where(result, is_subnormal, subnormal, normal);
  result |= (special & 0x7f800000u) | sign;
  bit_copy(out, result);
}

/// binary32 → IEEE binary16 in the low half of each lane, rounded to nearest even; too large becomes infinite.
template <std::size_t Bytes>
[[gnu::always_inline]] inline void to_binary16(vector<std::uint32_t, Bytes>& out, const vector<float, Bytes>& value) {
  using words = vector<std::uint32_t, Bytes>;
  words bits;
  bit_copy(bits, value);
  const words sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  // Normal results: re-bias the exponent, add just under half of the last kept bit, and one more where that is odd.
  const words odd = (magnitude >> 13) & 1u;
  const words normal = (magnitude - (112u << 23) + 0xfffu + odd) >> 13;
  // Subnormal results: adding 0.5 lets the floating-point unit round at 2^-24.
  vector<float, Bytes> shifted;
  bit_copy(shifted, magnitude);
  shifted += 0.5f;
  words subnormal;
  bit_copy(subnormal, shifted);
  subnormal -= 0x3f000000u;
  words is_small, is_large, is_nan;
  bit_copy(is_small, magnitude < (113u << 23));
  bit_copy(is_large, magnitude >= (143u << 23));
  bit_copy(is_nan, magnitude > 0x7f800000u);
  words result;
  where(result, is_small, subnormal, normal);
  where(result, is_large, words((is_nan & 0x0200u) | 0x7c00u), result);
  out = result | sign;
}

/// binary32 → bfloat16 in the low half of each lane, rounded to nearest even.
template <std::size_t Bytes>
[[gnu::always_inline]] inline void to_bfloat16(vector<std::uint32_t, Bytes>& out, const vector<float, Bytes>& value) {
  using words = vector<std::uint32_t, Bytes>;
  words bits;
  bit_copy(bits, value);
  const words rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  words is_nan;
  bit_copy(is_nan, (bits & 0x7fffffffu) > 0x7f800000u);
  where(out, is_nan, words((bits >> 16) | 0x40u), rounded);
}

/// The type in which elements stored as T are multiplied.
template <scalar T>
using compute_type = std::conditional_t<format_of<T> == number_format::binary64, double, float>;

/// Reads as many elements of type From as there are lanes of type To, and converts each. A vector of elements would be
/// the natural source; GCC 12 turns one into a wider one in pieces of half its bytes, and elements that lie in memory
/// at once.
template <class To, std::size_t Bytes, class From>
[[gnu::always_inline]] inline void load_each(vector<To, Bytes>& out, const From* from) {
  if constexpr (std::is_same_v<To, From>) {
    __builtin_memcpy(&out, from, Bytes);
  } else if constexpr (has_neon && Bytes == 16 && 2 * sizeof(From) == sizeof(To)) {
    vector<From, 8> elements;
    __builtin_memcpy(&elements, from, sizeof(elements));
    widen_by_neon(out, elements);
  } else {
#ifdef __NVCC__  // its front end cannot read a list of lanes
    vector<From, Bytes / sizeof(To) * sizeof(From)> elements;
    __builtin_memcpy(&elements, from, sizeof(elements));
    out = __builtin_convertvector(elements, vector<To, Bytes>);
#else
    typedef From element __attribute__((may_alias));
    const auto* const at = reinterpret_cast<const element*>(from);
    [&]<std::size_t... Index>(std::index_sequence<Index...>) __attribute__((always_inline)) {
      out = vector<To, Bytes>{static_cast<To>(at[Index])...};
    }(std::make_index_sequence<Bytes / sizeof(To)>{});
#endif
  }
}

/// 16-bit elements anywhere in memory.
template <std::size_t Bytes>
struct halves_in_memory {
  typedef std::uint16_t type __attribute__((vector_size(Bytes), aligned(2), may_alias));
};

// clang compares the operands of inline assembly with the features of the function around it, not of the one that it is
// inlined into, so it takes these only where it was told to assume AVX-512. What nvcc makes of them, no host compiler
// takes.
#if defined(__x86_64__) && !defined(__NVCC__) && (!defined(__clang__) || defined(__AVX512F__))
/// Whether the processor converts vectors of so many bytes from and to binary16 itself, in one instruction. (The
/// compilers' names for it differ, and <immintrin.h> would double what including this library costs.)
inline constexpr bool converts_binary16(std::size_t bytes) { return bytes >= 32; }
template <std::size_t Bytes>
[[gnu::always_inline]] inline void load_binary16(vector<float, Bytes>& out, const void* from) {
  asm("vcvtph2ps {%1, %0|%0, %1}"
      : "=v"(out)
      : "vm"(*static_cast<const typename halves_in_memory<Bytes / 2>::type*>(from)));
}
template <std::size_t Bytes>
[[gnu::always_inline]] inline void store_binary16(void* to, const vector<float, Bytes>& value) {
  vector<std::uint16_t, Bytes / 2> halves;
  asm("vcvtps2ph {$0, %1, %0|%0, %1, 0}" : "=v"(halves) : "v"(value));  // 0: rounded to nearest even
  __builtin_memcpy(to, &halves, Bytes / 2);
}
#else
inline constexpr bool converts_binary16(std::size_t bytes) { return has_neon && bytes == 16; }
template <std::size_t Bytes>
[[gnu::always_inline]] inline void load_binary16(vector<float, Bytes>& out, const void* from) {
  vector<std::uint16_t, Bytes / 2> halves;
  __builtin_memcpy(&halves, from, Bytes / 2);
  from_binary16_by_neon(out, halves);
}
template <std::size_t Bytes>
[[gnu::always_inline]] inline void store_binary16(void* to, const vector<float, Bytes>& value) {
  vector<std::uint16_t, Bytes / 2> halves;
  to_binary16_by_neon(halves, value);
  __builtin_memcpy(to, &halves, Bytes / 2);
}
#endif

/// Reads Bytes / sizeof(compute_type<T>) elements.
template <std::size_t Bytes, scalar T>
[[gnu::always_inline]] inline void load(vector<compute_type<T>, Bytes>& out, const T* from) {
  if constexpr (sizeof(T) == sizeof(compute_type<T>)) {
    __builtin_memcpy(&out, from, Bytes);
  } else if constexpr (format_of<T> == number_format::binary16 && converts_binary16(Bytes)) {
    load_binary16<Bytes>(out, from);
  } else {
    vector<std::uint32_t, Bytes> bits;
    load_each<std::uint32_t, Bytes>(bits, reinterpret_cast<const std::uint16_t*>(from));
    if constexpr (format_of<T> == number_format::binary16)
      from_binary16<Bytes>(out, bits);
    else
      bit_copy(out, vector<std::uint32_t, Bytes>(bits << 16));
  }
}

/// Writes as many elements as load reads, rounded to T once.
template <std::size_t Bytes, scalar T>
[[gnu::always_inline]] inline void store(T* to, const vector<compute_type<T>, Bytes>& value) {
  if constexpr (sizeof(T) == sizeof(compute_type<T>)) {
    __builtin_memcpy(static_cast<void*>(to), &value, Bytes);
  } else if constexpr (format_of<T> == number_format::binary16 && converts_binary16(Bytes)) {
    store_binary16<Bytes>(to, value);
  } else {
    vector<std::uint32_t, Bytes> bits;
    if constexpr (format_of<T> == number_format::binary16)
      to_binary16<Bytes>(bits, value);
    else
      to_bfloat16<Bytes>(bits, value);
    const auto halves = __builtin_convertvector(bits, vector<std::uint16_t, Bytes / 2>);
    __builtin_memcpy(static_cast<void*>(to), &halves, Bytes / 2);
  }
}

// Which stores may bypass the caches.
#if defined(__x86_64__) && !defined(__NVCC__)
inline constexpr bool stores_bypass_caches = true;
/// Writes a whole vector to memory without reading its cache line first, nor keeping it: for results that no cache would
/// hold for long. Only fence_bypassing_stores() orders it before later stores. @pre `to` is a multiple of the vector's bytes
template <class V>
[[gnu::always_inline]] inline void store_bypassing(void* to, const V& value) {
#if defined(__clang__)
  __builtin_nontemporal_store(value, static_cast<V*>(to));
#else
  V kept = value;
  asm("vmovntps {%1, %0|%0, %1}" : "=m"(*static_cast<V*>(to)) : "v"(kept));
#endif
}
/// Other threads that see what this one writes from now on see what it has written so far.
inline void fence_bypassing_stores() { __builtin_ia32_sfence(); }
#else
inline constexpr bool stores_bypass_caches = false;
inline void fence_bypassing_stores() {}
#endif

/// A vector as doubles, in two of the same number of bytes. (By way of one of twice as many: GCC 12 converts each half
/// of it at once, and vectors of half the bytes in quarters.)
template <std::size_t Bytes>
[[gnu::always_inline]] inline void widen(vector<double, Bytes>& low, vector<double, Bytes>& high,
                                         const vector<float, Bytes>& value) {
  if constexpr (has_neon && Bytes == 16) {
    widen_by_neon(low, value);
    widen_upper_by_neon(high, value);
  } else {
    const auto both = __builtin_convertvector(value, vector<double, 2 * Bytes>);
    __builtin_memcpy(&low, &both, Bytes);
    __builtin_memcpy(&high, reinterpret_cast<const char*>(&both) + Bytes, Bytes);
  }
}

/// As store, bypassing the caches. @pre `to` is a multiple of the bytes that are written
template <std::size_t Bytes, scalar T>
[[gnu::always_inline]] inline void store_past_caches(T* to, const vector<compute_type<T>, Bytes>& value) {
  constexpr std::size_t written = Bytes / sizeof(compute_type<T>) * sizeof(T);
  vector<float, written> elements;
  store<Bytes>(reinterpret_cast<T*>(&elements), value);
  store_bypassing(to, elements);
}

/// How many elements there are from here to the next address that is a multiple of Bytes. @pre Bytes is a power of two
template <std::size_t Bytes, class T>
[[gnu::always_inline]] inline std::size_t elements_to_boundary(const T* from) {
  return (Bytes - reinterpret_cast<std::uintptr_t>(from) % Bytes) % Bytes / sizeof(T);
}

/// Whether every element is zero, of either sign.
template <std::size_t Bytes, scalar T>
[[gnu::always_inline]] inline bool all_zero(const T* elements, std::size_t length) {
  using bits = std::conditional_t<sizeof(T) == 8, std::uint64_t,
                                  std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint16_t>>;
  constexpr auto magnitude = static_cast<bits>(static_cast<bits>(~bits{0}) >> 1);
  constexpr std::size_t step = Bytes / sizeof(T);
  std::size_t x = 0;
  vector<bits, Bytes> any = {};
  for (; x + step <= length; x += step) {
    vector<bits, Bytes> value;
    __builtin_memcpy(&value, elements + x, Bytes);
    any |= value & magnitude;
  }
  bits rest = 0;
  for (std::size_t i = 0; i < step; ++i) rest = static_cast<bits>(rest | any[i]);
  for (; x < length; ++x) {
    bits value;
    __builtin_memcpy(&value, elements + x, sizeof(T));
    rest = static_cast<bits>(rest | (value & magnitude));
  }
  return rest == 0;
}

/// Copies `bytes` bytes, fewer than Most, in pieces of Most/2, Most/4, …: short segments would spend most of their time
/// in calls of memcpy otherwise. @pre Most is a power of two, bytes a multiple of Least
template <std::size_t Most, std::size_t Least>
[[gnu::always_inline]] inline void copy_fewer(void* to, const void* from, std::size_t bytes) {
  constexpr std::size_t half = Most / 2;
  if (bytes & half) {
    __builtin_memcpy(to, from, half);
    to = static_cast<char*>(to) + half;
    from = static_cast<const char*>(from) + half;
  }
  if constexpr (half > Least) copy_fewer<half, Least>(to, from, bytes);
}

}  // namespace adasum::detail::serial
