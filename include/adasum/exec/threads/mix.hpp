// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>

#include "../../core/segments.hpp"
#include "../serial/kernels.hpp"

/// Linear combinations and copies: what becomes of an element does not depend on how many are worked on at once, so
/// threads can share them in any way. They do as in measure, whose vectors are still in their caches.
namespace adasum::detail::threads_backend {

struct team;

/// Linear combinations of n vectors, by kernels that have no list where they are for pairs.
void mix(team& shared, serial::kernels kernels, const slice& window, const void* const* vectors, std::size_t n,
         const double* weights, void* out);
/// In double.
void mix(team& shared, const serial::double_mixing& kernel, const slice& window, const void* const* vectors,
         std::size_t n, const double* weights, void* out);

/// Copies elements; those of one type by no kernel.
void copy(team& shared, serial::conversion_kernels::kernel* kernel, const void* from, std::size_t from_bytes, void* to,
          std::size_t to_bytes, std::size_t count);

}  // namespace adasum::detail::threads_backend

#if ADASUM_DEFINITIONS
#include <algorithm>
#include <cstring>

#include "team.hpp"

namespace adasum::detail::threads_backend {

/// Linear combinations of n vectors, mixed by kernel(part of the window, weights of its segments).
template <class Kernel>
void mix_by(team& shared, const slice& window, std::size_t n, std::size_t element_bytes, const double* weights,
            const Kernel& kernel) {
  const auto bytes = n * window.range.size() * element_bytes;
  const team_turn turn(shared, bytes, bytes);
  if (turn.is_alone()) return kernel(window, weights);
  // Where they are many, kernels allocate. This thread does so now: an item that fails then fails on a worker, which has
  // written nothing, and is done again here.
  kernel(slice{window.segments, {window.range.begin, window.range.begin}, window.origin}, weights);
  auto& pieces = turn.pieces();
  cut(window, std::max<std::size_t>(turn.bytes_at_a_time(bytes) / (n * element_bytes) / 1024, 1) * 1024, pieces);
  turn.for_each(pieces.size(), [&](std::size_t i) { kernel(pieces[i].of(window), weights + pieces[i].first * n); });
}

ADASUM_INLINE void mix(team& shared, serial::kernels kernels, const slice& window, const void* const* vectors,
                       std::size_t n, const double* weights, void* out) {
  const auto element_bytes = kernels.pair->element_bytes, bytes = n * window.range.size() * element_bytes;
  mix_by(shared, window, n, element_bytes, weights, [&](const slice& part, const double* of_part) {
    serial::windows::mix(kernels, part, vectors, n, of_part, bytes, out);
  });
}

ADASUM_INLINE void mix(team& shared, const serial::double_mixing& kernel, const slice& window,
                       const void* const* vectors, std::size_t n, const double* weights, void* out) {
  mix_by(shared, window, n, kernel.from_bytes, weights, [&](const slice& part, const double* of_part) {
    serial::windows::mix_in_double(kernel, part, vectors, n, of_part, out);
  });
}

ADASUM_INLINE void copy(team& shared, serial::conversion_kernels::kernel* kernel, const void* from,
                        std::size_t from_bytes, void* to, std::size_t to_bytes, std::size_t count) {
  const auto copy_piece = [&](std::size_t begin, std::size_t length) {
    const auto* const some = static_cast<const std::byte*>(from) + begin * from_bytes;
    auto* const there = static_cast<std::byte*>(to) + begin * to_bytes;
    if (kernel != nullptr)
      kernel(some, there, length);
    else if (length != 0)
      std::memcpy(there, some, length * to_bytes);
  };
  const auto bytes = count * (from_bytes + to_bytes);
  const team_turn turn(shared, bytes, bytes);
  if (turn.is_alone()) return copy_piece(0, count);
  const auto length = std::max<std::size_t>(turn.bytes_at_a_time(bytes) / from_bytes, 1);
  turn.for_each((count + length - 1) / length,
                [&](std::size_t i) { copy_piece(i * length, std::min(length, count - i * length)); });
}

}  // namespace adasum::detail::threads_backend
#endif
