// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <Kokkos_Core.hpp>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "../../core/scalar.hpp"
#include "../../core/segments.hpp"
#include "../tiles.hpp"

/// How work is shared out, and the elements themselves. Where the host works on the execution space's memory, tiles are a
/// range, and each of them is given to the vector kernels of serial_space. On a device, a team of threads works on each tile,
/// on elements by their bits, so that every storage type of a format will do.
namespace adasum::detail::kokkos {

/// Whether the host works on the memory of this space: Kokkos::Serial, OpenMP, Threads; not Cuda, HIP, SYCL.
template <class ExecutionSpace>
inline constexpr bool works_on_host =
    Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename ExecutionSpace::memory_space>::accessible &&
    Kokkos::SpaceAccessibility<ExecutionSpace, Kokkos::HostSpace>::accessible;

/// Elements of the host's longest tile. A launch costs little beside it, and threads share even one segment.
inline constexpr std::size_t host_tile_length = std::size_t{1} << 14;  // 64 KiB of float
/// Elements of a team's longest tile: each of its threads, some hundreds, gets some tens of them.
inline constexpr std::size_t team_tile_length = std::size_t{1} << 13;

/// body(i) for i < count, by the threads of the host.
template <class ExecutionSpace, class Body>
void for_each_on_host(const ExecutionSpace& instance, const char* label, std::size_t count, const Body& body) {
  if (count == 0) return;
  Kokkos::parallel_for(label, Kokkos::RangePolicy<ExecutionSpace>(instance, 0, count), body);
}

/// The elements of one tile as a window of its own, of one segment.
inline slice window_of(const slice& window, const tile& one) {
  return {window.segments.part(one.segment, 1), {window.origin + one.begin, window.origin + one.end}, window.origin};
}

template <class ExecutionSpace>
using team_member = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;

template <class ExecutionSpace>
auto teams(const ExecutionSpace& instance, std::size_t count) {
  return Kokkos::TeamPolicy<ExecutionSpace>(instance, static_cast<int>(count), Kokkos::AUTO);
}

// By __builtin_bit_cast: std::bit_cast is for the host only, where nvcc compiles.

/// Bits of a 16-bit format's exponent and fraction.
template <number_format Format>
struct half_layout {
  static constexpr int fraction = Format == number_format::binary16 ? 10 : 7;
  static constexpr int exponent = 15 - fraction;
  static constexpr int bias = (1 << (exponent - 1)) - 1;
};

/// The value of a number of `Format` with these bits; exact.
template <number_format Format>
KOKKOS_INLINE_FUNCTION double decode(std::uint16_t bits) {
  using layout = half_layout<Format>;
  const std::uint64_t sign = static_cast<std::uint64_t>(bits >> 15) << 63;
  const int exponent = (bits >> layout::fraction) & ((1 << layout::exponent) - 1);
  const std::uint64_t fraction = bits & ((1u << layout::fraction) - 1);
  if (exponent == 0) {  // zero, or a multiple of the smallest number
    const auto smallest = static_cast<std::uint64_t>(1023 + 1 - layout::bias - layout::fraction) << 52;
    const double magnitude = static_cast<double>(fraction) * __builtin_bit_cast(double, smallest);
    return sign ? -magnitude : magnitude;
  }
  const std::uint64_t wide =
      exponent == (1 << layout::exponent) - 1 ? 2047 : static_cast<std::uint64_t>(exponent - layout::bias + 1023);
  return __builtin_bit_cast(double, sign | wide << 52 | fraction << (52 - layout::fraction));
}

/// The bits of x in `Format`, rounded to nearest even.
template <number_format Format>
KOKKOS_INLINE_FUNCTION std::uint16_t encode(double x) {
  using layout = half_layout<Format>;
  constexpr auto infinity = static_cast<std::uint64_t>((1 << layout::exponent) - 1) << layout::fraction;
  const auto bits = __builtin_bit_cast(std::uint64_t, x);
  const auto sign = static_cast<std::uint64_t>(bits >> 63) << 15;
  const int exponent = static_cast<int>((bits >> 52) & 2047) - 1023 + layout::bias;
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
  std::uint64_t magnitude = 0;
  if (x != x) {
    magnitude = infinity | std::uint64_t{1} << (layout::fraction - 1);
  } else if (exponent >= (1 << layout::exponent) - 1) {
    magnitude = infinity;
  } else if (exponent >= -layout::fraction) {
    // The fraction with its leading 1, cut where the format's last bit is; below the normal numbers, higher up.
    const int cut = 52 - layout::fraction + (exponent < 1 ? 1 - exponent : 0);
    const std::uint64_t whole = fraction | std::uint64_t{1} << 52;
    const std::uint64_t kept = whole >> cut, rest = whole & ((std::uint64_t{1} << cut) - 1),
                        half = std::uint64_t{1} << (cut - 1);
    magnitude = kept + (rest > half || (rest == half && (kept & 1)) ? 1 : 0);  // a carry goes on into the exponent
    if (exponent >= 1) magnitude += static_cast<std::uint64_t>(exponent - 1) << layout::fraction;
  }
  return static_cast<std::uint16_t>(sign | magnitude);
}

template <scalar T>
KOKKOS_INLINE_FUNCTION double widen(const T& x) {
  if constexpr (sizeof(T) == 2)
    return decode<format_of<T>>(__builtin_bit_cast(std::uint16_t, x));
  else
    return static_cast<double>(x);
}

template <scalar T>
KOKKOS_INLINE_FUNCTION void narrow(double x, T& to) {
  if constexpr (sizeof(T) == 2)
    to = __builtin_bit_cast(T, encode<format_of<T>>(x));
  else
    to = static_cast<T>(x);
}

/// to = from, rounded to nearest even where the types differ.
template <scalar From, scalar To>
KOKKOS_INLINE_FUNCTION void assign(const From& from, To& to) {
  if constexpr (std::is_same_v<From, To>)
    to = from;
  else
    narrow(widen(from), to);
}

}  // namespace adasum::detail::kokkos
