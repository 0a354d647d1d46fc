// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "../../core/scalar.hpp"
#include "../../core/segments.hpp"
#include "../../core/wire_losses.hpp"
#include "../serial.hpp"
#include "pieces.hpp"
#include "team.hpp"

/// Linear combinations and copies: what becomes of an element does not depend on how many are worked on at once, so
/// threads can share them in any way. They do as in measure, whose vectors are still in their caches.
namespace adasum::detail::threads_backend {

/// Linear combinations of n vectors of T, mixed by kernel(part of the window, weights of its segments).
template <scalar T, class Kernel>
void mix_by(team& shared, const slice& window, std::size_t n, const double* weights, Kernel&& kernel) {
  const auto bytes = serial_space::bytes_of<T>(window, n);
  const team_turn turn(shared, bytes, bytes);
  if (turn.is_alone()) return kernel(window, weights);
  // Where they are many, kernels allocate. This thread does so now: an item that fails then fails on a worker, which has
  // written nothing, and is done again here.
  kernel(slice{window.segments, {window.range.begin, window.range.begin}, window.origin}, weights);
  auto& pieces = turn.pieces();
  cut(window, std::max<std::size_t>(turn.bytes_at_a_time(bytes) / (n * sizeof(T)) / 1024, 1) * 1024, pieces);
  turn.for_each(pieces.size(), [&](std::size_t i) { kernel(pieces[i].of(window), weights + pieces[i].first * n); });
}

/// out[x] = Σᵢ weights[k·n + i]·vᵢ[x], k being the segment of x, by the kernels of serial_space, or those for pairs.
template <scalar T, class Kernels>
void mix(team& shared, const Kernels& kernels, const slice& window, std::span<const T* const> vectors,
         const double* weights, T* out) {
  const auto bytes = Kernels::template bytes_of<T>(window, vectors.size());
  mix_by<T>(shared, window, vectors.size(), weights, [&](const slice& part, const double* of_part) {
    kernels.template mix<T>(part, vectors, of_part, out, bytes);
  });
}

/// Copies piece by piece, by copy_piece(from, to, count).
template <scalar From, scalar To, class CopyPiece>
void copy_by(team& shared, const From* from, To* to, std::size_t count, const CopyPiece& copy_piece) {
  const auto bytes = count * (sizeof(From) + sizeof(To));
  const team_turn turn(shared, bytes, bytes);
  if (turn.is_alone()) return copy_piece(from, to, count);
  const auto length = std::max<std::size_t>(turn.bytes_at_a_time(bytes) / sizeof(From), 1);
  turn.for_each((count + length - 1) / length, [&](std::size_t i) {
    const auto begin = i * length;
    copy_piece(from + begin, to + begin, std::min(length, count - begin));
  });
}

/// to[x] = from[x], of one element type or rounded to nearest even.
template <scalar From, scalar To>
void copy(team& shared, const serial_space& kernels, const From* from, To* to, std::size_t count) {
  copy_by(shared, from, to, count,
          [&](const From* some, To* there, std::size_t length) { kernels.copy(some, there, length); });
}
/// The same, and counts what is lost.
template <scalar To>
void copy(team& shared, const serial_space& kernels, const float* from, To* to, std::size_t count,
          wire_losses& losses) {
  std::atomic<std::uint64_t> overflowed = 0, vanished = 0;
  copy_by(shared, from, to, count, [&](const float* some, To* there, std::size_t length) {
    wire_losses found;
    kernels.copy(some, there, length, found);
    overflowed.fetch_add(found.overflowed, std::memory_order_relaxed);
    vanished.fetch_add(found.vanished, std::memory_order_relaxed);
  });
  losses += {overflowed.load(std::memory_order_relaxed), vanished.load(std::memory_order_relaxed)};
}

}  // namespace adasum::detail::threads_backend
