// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "error.hpp"
#include "segments.hpp"

namespace adasum {

/// How the result of a reduce_scatter is divided among the ranks: the first elements go to rank 0, the next ones to rank 1,
/// and so on. There is one part for each rank. Parts may be empty, and a segment may extend over several parts.
///
///     adasum::parts{1024, 0, 4096};                       // lengths, of any integer types
///     adasum::parts(lengths.begin(), lengths.end());      // any iterators over integers
///     adasum::parts(lengths);                             // any range of integers
class parts {
 public:
  /// No part.
  parts() = default;

  /// @throws bad_input  a negative length, or the total overflows
  template <std::integral Length>
  parts(std::initializer_list<Length> lengths) : parts(lengths.begin(), lengths.end()) {}

  /// Lengths of several types. @throws bad_input as above.
  template <std::integral... Lengths>
    requires(sizeof...(Lengths) > 1)
  parts(Lengths... lengths) {
    (append(lengths), ...);
  }

  /// @throws bad_input as above.
  template <std::input_iterator Iterator, std::sentinel_for<Iterator> Sentinel>
    requires std::integral<std::iter_value_t<Iterator>>
  parts(Iterator first, Sentinel last) {
    for (; first != last; ++first) append(*first);
  }

  /// @throws bad_input as above.
  template <std::ranges::input_range Range>
    requires(std::integral<std::ranges::range_value_t<Range>> && !std::same_as<std::remove_cvref_t<Range>, parts>)
  explicit parts(Range&& lengths) : parts(std::ranges::begin(lengths), std::ranges::end(lengths)) {}

  /// How many: one for each rank.
  std::size_t size() const { return offsets_.size() - 1; }
  /// Elements of all of them.
  std::size_t total() const { return offsets_.back(); }
  /// Where the part of a rank lies in the gradient. @pre rank < size()
  index_range of_rank(std::size_t rank) const { return {offsets_[rank], offsets_[rank + 1]}; }

  /// size() + 1 boundaries.
  std::span<const std::size_t> offsets() const { return offsets_; }

  friend bool operator==(const parts&, const parts&) = default;

 private:
  void append(std::integral auto length) {
    const auto rank = std::to_string(size());
    if (std::cmp_less(length, 0))
      throw bad_input("adasum::parts: the part of rank " + rank + " has the negative length " + std::to_string(length));
    const auto count = static_cast<std::size_t>(length);
    if (count > std::numeric_limits<std::size_t>::max() - total())
      throw bad_input("adasum::parts: the total length overflows at the part of rank " + rank);
    offsets_.push_back(total() + count);
  }

  std::vector<std::size_t> offsets_{0};
};

}  // namespace adasum
