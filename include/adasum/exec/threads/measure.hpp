// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>

#include "../../core/segments.hpp"
#include "../serial/kernels.hpp"

namespace adasum::detail::threads_backend {

struct team;

/// Gram matrices of n vectors, by kernels that have no list where they are for pairs.
/// @param in_double  every product and sum, where the kernels for one or two vectors of narrow elements have float lanes
/// @param bytes      of all vectors in the window of which this is a round
void measure(team& shared, serial::kernels kernels, bool in_double, const slice& window, const void* const* vectors,
             std::size_t n, std::size_t bytes, double* gram);

}  // namespace adasum::detail::threads_backend

#if ADASUM_DEFINITIONS
#include <algorithm>
#include <span>
#include <vector>

#include "../../core/gram.hpp"
#include "../../core/scalar.hpp"
#include "../serial/blocks.hpp"
#include "team.hpp"

/// Gram matrices, with the bits that the serial kernels give: these add up the sums of blocks. Segments that are not cut
/// are theirs. Of one that is cut, at boundaries of blocks, each thread keeps the sums of its blocks, and the calling
/// thread adds them in order.
namespace adasum::detail::threads_backend {

/// One call of measure.
class measurement {
 public:
  measurement(serial::kernels kernels, bool in_double, const slice& window, const void* const* vectors, std::size_t n,
              std::size_t bytes, double* gram)
      : kernels_(kernels),
        in_double_(in_double),
        window_(window),
        vectors_(vectors),
        n_(n),
        bytes_(bytes),
        packed_(packed_size(n)),
        gram_(gram) {}

  void run(team& shared) {
    const team_turn turn(shared, bytes_of(window_), bytes_);
    if (turn.is_alone()) return measure_whole(window_, gram_);
    auto& pieces = turn.pieces();
    cut(window_, piece_length(turn), pieces);
    std::fill_n(gram_, window_.segments.size() * packed_, 0.0);
    for (auto rest = std::span(pieces); !rest.empty();) {
      const auto some = rest.first(place_sums(rest, 4 * turn.participants(), shared.limits.sums, turn.sums()));
      rest = rest.subspan(some.size());
      double* const sums = turn.sums().data();
      turn.for_each(some.size(), [&](std::size_t i) { measure(some[i], sums + some[i].sums); });
      add_up(some, sums);
    }
    if (needs_another_look_) measure_whole(window_, gram_);
  }

 private:
  std::size_t element_bytes() const { return kernels_.pair->element_bytes; }
  std::size_t bytes_of(const slice& window) const { return n_ * window.range.size() * element_bytes(); }
  bool is_few() const { return n_ <= 2 && !in_double_; }
  bool from_memory() const { return serial::exceeds_cache(bytes_); }

  /// Elements of each vector whose sums the kernels add up with others'.
  std::size_t block_length() const {
    if (is_few()) return kernels_.pair->block_length;
    return serial::block_length(kernels_.list->converts, n_, from_memory());
  }
  /// How many blocks the kernels make of so many elements, at the most: the last few can be one of their own.
  std::size_t blocks_of(std::size_t length) const { return length / block_length() + 2; }

  std::size_t piece_length(const team_turn& turn) const {
    const auto of_all = n_ * element_bytes(), block = block_length();
    const auto blocks = turn.bytes_at_a_time(of_all * window_.range.size()) / of_all / block;
    return block * std::max<std::size_t>(blocks, 1);
  }

  /// Places for the sums of the first pieces: of as many as fit, or `least` if there are so many.
  /// @return how many
  std::size_t place_sums(std::span<piece> pieces, std::size_t least, std::size_t most_bytes,
                         std::vector<double>& sums) const {
    std::size_t number = 0, count = 0;
    for (; number < pieces.size() && (number < least || count * sizeof(double) < most_bytes); ++number) {
      auto& one = pieces[number];
      one.sums = count;
      if (one.is_part) count += blocks_of(one.end - one.begin) * packed_;
    }
    if (sums.size() < count) sums.resize(count);
    return number;
  }

  void measure(const piece& one, double* sums) const {
    if (one.is_part)
      measure_part(one, sums);
    else
      measure_whole(one.of(window_), gram_ + one.first * packed_);
  }

  void measure_whole(const slice& window, double* gram) const {
    const bool is_in_double = in_double_ && n_ <= 2;
    serial::windows::measure(kernels_, window, vectors_, n_, is_in_double, is_in_double ? bytes_of(window) : bytes_,
                               gram);
  }

  void measure_part(const piece& one, double* sums) const {
    const auto length = one.end - one.begin;
    serial::scratch<const void*, serial::few_vectors> at(n_);
    for (std::size_t i = 0; i < n_; ++i)
      at.data()[i] = static_cast<const std::byte*>(vectors_[i]) + one.begin * element_bytes();
    std::fill_n(sums, blocks_of(length) * packed_, 0.0);
    serial::windows::measure_piece(kernels_, at.data(), n_, length, !is_few(), from_memory(), sums, packed_);
  }

  void add_up(std::span<const piece> pieces, const double* all_sums) {
    for (const auto& one : pieces) {
      if (!one.is_part) continue;
      const double* sums = all_sums + one.sums;
      needs_another_look_ = needs_another_look_ || has_underflowed(sums);
      double* const gram = gram_ + one.first * packed_;
      for (auto blocks = blocks_of(one.end - one.begin); blocks > 0; --blocks, sums += packed_)
        for (std::size_t p = 0; p < packed_; ++p) gram[p] += sums[p];
    }
  }

  /// Whether all squares of some vector's part underflow, which the kernels say by a number that stands for their sum.
  /// Those of several parts would add up to another one. (The kernels for one or two vectors give it to each block.)
  bool has_underflowed(const double* sums) const {
    if (is_few() || element_bytes() != sizeof(double)) return false;
    for (std::size_t i = 0; i < n_; ++i)
      if (magnitude_bits(sums[packed_index(i, i)]) == magnitude_bits(serial::underflowed_square)) return true;
    return false;
  }

  serial::kernels kernels_;
  bool in_double_;
  const slice& window_;
  const void* const* vectors_;
  std::size_t n_, bytes_, packed_;
  double* gram_;
  bool needs_another_look_ = false;
};

ADASUM_INLINE void measure(team& shared, serial::kernels kernels, bool in_double, const slice& window,
                           const void* const* vectors, std::size_t n, std::size_t bytes, double* gram) {
  measurement(kernels, in_double, window, vectors, n, bytes, gram).run(shared);
}

}  // namespace adasum::detail::threads_backend
#endif
