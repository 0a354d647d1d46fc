// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

#include "../../core/float_bits.hpp"
#include "../../core/gram.hpp"
#include "../../core/scalar.hpp"
#include "../../core/segments.hpp"
#include "../serial.hpp"
#include "../serial/blocks.hpp"
#include "../serial/kernels.hpp"
#include "pieces.hpp"
#include "team.hpp"

/// Gram matrices, with the bits that the serial kernels give: these add up the sums of blocks. Segments that are not cut
/// are theirs. Of one that is cut, at boundaries of blocks, each thread keeps the sums of its blocks, and the calling
/// thread adds them in order.
namespace adasum::detail::threads_backend {

/// Which of the serial kernels measure.
enum class precision {
  as_usual,   ///< one or two vectors of narrow elements in float lanes
  in_double,  ///< every product and sum in double
};

/// Measures n vectors of T by the kernels of serial_space, or those for pairs.
template <class Kernels, scalar T>
class measurement {
 public:
  /// @param bytes  of all vectors in the window of which this is a round
  measurement(const Kernels& kernels, precision wanted, const slice& window, std::span<const T* const> vectors,
              std::size_t bytes, double* gram)
      : kernels_(kernels),
        wanted_(wanted),
        window_(window),
        vectors_(vectors),
        bytes_(bytes),
        packed_(packed_size(vectors.size())),
        gram_(gram) {}

  void run(team& shared) {
    const team_turn turn(shared, Kernels::template bytes_of<T>(window_, vectors_.size()), bytes_);
    // serial_pair_space has no kernel for one vector.
    if (turn.is_alone() || (is_for_pairs && vectors_.size() == 1)) return measure_whole(window_, gram_);
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
  static constexpr bool is_for_pairs = std::same_as<Kernels, serial_pair_space>;

  bool is_few() const { return vectors_.size() <= 2 && wanted_ == precision::as_usual; }
  bool from_memory() const { return serial::come_from_memory(bytes_); }

  /// Elements of each vector whose sums the kernels add up with others'.
  std::size_t block_length() const {
    const auto kernels = kernels_.template kernels<T>();
    if (is_few()) return kernels.pair->block_length;
    return serial::block_length(kernels.list->converts, vectors_.size(), from_memory());
  }
  /// How many blocks the kernels make of so many elements, at the most: the last few can be one of their own.
  std::size_t blocks_of(std::size_t length) const { return length / block_length() + 2; }

  std::size_t piece_length(const team_turn& turn) const {
    const auto of_all = vectors_.size() * sizeof(T), block = block_length();
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
    if constexpr (!is_for_pairs)
      if (wanted_ == precision::in_double && vectors_.size() <= 2)
        return kernels_.template measure_in_double<T>(window, vectors_, gram);
    kernels_.template measure<T>(window, vectors_, gram, bytes_);
  }

  void measure_part(const piece& one, double* sums) const {
    const auto n = vectors_.size(), length = one.end - one.begin;
    serial::scratch<measurement, const void*, 64> at(n);
    for (std::size_t i = 0; i < n; ++i) at.data()[i] = vectors_[i] + one.begin;
    std::fill_n(sums, blocks_of(length) * packed_, 0.0);
    serial::windows::measure_piece(kernels_.template kernels<T>(), at.data(), n, length, !is_few(), from_memory(),
                                     sums, packed_);
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
    if (is_few() || format_of<T> != number_format::binary64) return false;
    for (std::size_t i = 0; i < vectors_.size(); ++i)
      if (magnitude_bits(sums[packed_index(i, i)]) == magnitude_bits(serial::underflowed_square)) return true;
    return false;
  }

  const Kernels& kernels_;
  precision wanted_;
  const slice& window_;
  std::span<const T* const> vectors_;
  std::size_t bytes_, packed_;
  double* gram_;
  bool needs_another_look_ = false;
};

}  // namespace adasum::detail::threads_backend
