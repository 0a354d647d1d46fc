// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "../../core/scalar.hpp"
#include "../tiles.hpp"

namespace adasum {

/// @cond internal
template <>
struct scalar_traits<__half> : stored_as<number_format::binary16> {};
template <>
struct scalar_traits<__nv_bfloat16> : stored_as<number_format::bfloat16> {};
/// @endcond

}  // namespace adasum

/// How kernels read and write elements: 16 bytes at a time, computing in double. Kernels are templates over the number
/// format, so that storage types of one format share them. (__builtin_bit_cast: std::bit_cast is for the host only.)
namespace adasum::detail::cuda {

template <number_format Format>
struct element {
  using storage = std::uint16_t;
};
template <>
struct element<number_format::binary64> {
  using storage = double;
};
template <>
struct element<number_format::binary32> {
  using storage = float;
};
template <number_format Format>
using storage_of = typename element<Format>::storage;

template <number_format Format>
__device__ inline double widen(storage_of<Format> x) {
  if constexpr (Format == number_format::binary16)
    return static_cast<double>(__half2float(__ushort_as_half(x)));
  else if constexpr (Format == number_format::bfloat16)
    return static_cast<double>(__bfloat162float(__ushort_as_bfloat16(x)));
  else
    return static_cast<double>(x);
}

/// Rounded to nearest even, once.
template <number_format Format>
__device__ inline storage_of<Format> narrow(double x) {
  if constexpr (Format == number_format::binary16)
    return __half_as_ushort(__double2half(x));
  else if constexpr (Format == number_format::bfloat16)
    return __bfloat16_as_ushort(__double2bfloat16(x));
  else
    return static_cast<storage_of<Format>>(x);
}

/// What one thread reads or writes at once.
template <number_format Format>
struct alignas(16) pack {
  static constexpr unsigned size = 16 / sizeof(storage_of<Format>);
  storage_of<Format> at[size];
};

/// Threads of a block, and how many packs of a tile each of them handles. These, and with them the order of additions,
/// are the same on every device.
inline constexpr unsigned threads_per_block = 256;
inline constexpr unsigned packs_per_thread = 4;

/// Elements of the longest tile: 16 KiB of one vector.
template <number_format Format>
inline constexpr std::size_t tile_length = std::size_t{threads_per_block} * packs_per_thread * pack<Format>::size;

/// Where this thread's pack number c of a tile begins.
template <number_format Format>
__device__ inline std::size_t place_of_pack(const tile& one, unsigned c) {
  return one.begin + (std::size_t{c} * threads_per_block + threadIdx.x) * pack<Format>::size;
}

template <number_format Format>
__device__ inline bool is_at_16_bytes(const void* vector, std::size_t first) {
  return (reinterpret_cast<std::uintptr_t>(vector) + first * sizeof(storage_of<Format>)) % 16 == 0;
}

/// Whether every thread has all its packs of this tile, and each of them at 16 bytes: then nothing need be asked per
/// pack, and loads can wait for their data together. The same for all threads. @param n of the vectors
template <number_format Format, class Vectors>
__device__ inline bool is_whole(const tile& one, const Vectors& vectors, int n) {
  bool whole = one.end - one.begin == tile_length<Format>;
  for (int i = 0; i < n; ++i) whole = whole && is_at_16_bytes<Format>(vectors[i], one.begin);
  return whole;
}

/// The elements [first, end) of a vector, at most a pack of them, and zeros behind. Where a tile is not whole the same
/// thread reads the same elements one by one, so that sums do not depend on where vectors lie.
template <number_format Format, bool Whole>
__device__ inline pack<Format> load(const void* vector, std::size_t first, std::size_t end) {
  const auto* const from = static_cast<const storage_of<Format>*>(vector) + first;
  pack<Format> x;
  if constexpr (Whole) {
    x = __builtin_bit_cast(pack<Format>, *reinterpret_cast<const uint4*>(from));
  } else {
#pragma unroll
    for (unsigned e = 0; e < pack<Format>::size; ++e) x.at[e] = first + e < end ? from[e] : storage_of<Format>{};
  }
  return x;
}

template <number_format Format, bool Whole>
__device__ inline void store(const pack<Format>& x, storage_of<Format>* out, std::size_t first, std::size_t end) {
  if constexpr (Whole) {
    *reinterpret_cast<uint4*>(out + first) = __builtin_bit_cast(uint4, x);
  } else {
#pragma unroll
    for (unsigned e = 0; e < pack<Format>::size; ++e)
      if (first + e < end) out[first + e] = x.at[e];
  }
}

/// Addresses of up to Count vectors, as an argument of a kernel.
template <int Count>
struct vector_list {
  const void* at[Count];
  __host__ __device__ const void* operator[](int i) const { return at[i]; }
};

/// body(std::true_type) for a whole tile, body(std::false_type) for another.
template <class Body>
__device__ inline void by_wholeness(bool whole, Body&& body) {
  if (whole)
    body(std::true_type{});
  else
    body(std::false_type{});
}

}  // namespace adasum::detail::cuda
