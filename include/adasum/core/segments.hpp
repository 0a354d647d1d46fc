// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <algorithm>
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

namespace adasum {

/// The elements [begin, end) of a flat vector.
struct index_range {
  std::size_t begin = 0;  ///< the first
  std::size_t end = 0;    ///< behind the last

  /// How many.
  constexpr std::size_t size() const { return end - begin; }
  /// Whether there is none.
  constexpr bool empty() const { return begin == end; }
  friend constexpr bool operator==(const index_range&, const index_range&) = default;
};

/// Boundaries of consecutive segments: segment k holds the elements [offsets[k], offsets[k + 1]). The view does not own them.
class segments_view {
 public:
  /// A view of nothing, to which another can be assigned.
  constexpr segments_view() = default;
  /// @pre offsets is non-empty and does not decrease.
  constexpr explicit segments_view(std::span<const std::size_t> offsets) : offsets_(offsets) {}

  /// How many segments.
  constexpr std::size_t size() const { return offsets_.size() - 1; }
  /// The elements of segment k.
  constexpr index_range range(std::size_t k) const { return {offsets_[k], offsets_[k + 1]}; }
  /// The elements of all segments.
  constexpr index_range all() const { return {offsets_.front(), offsets_.back()}; }
  /// The segments [first, first + count), at the positions that they have in the whole vector.
  constexpr segments_view part(std::size_t first, std::size_t count) const {
    return segments_view{offsets_.subspan(first, count + 1)};
  }
  /// The boundaries, one more than there are segments.
  constexpr std::span<const std::size_t> offsets() const { return offsets_; }

 private:
  std::span<const std::size_t> offsets_;
};

/// How a flat gradient is cut into segments, for example one for each layer or tensor. Rules weigh each segment separately.
/// Segments may be empty.
///
///     adasum::segments{1024, 10, 4096};                       // lengths, of any integer types
///     adasum::segments(lengths.begin(), lengths.end());       // any iterators over integers
///     adasum::segments(lengths);                              // any range of integers
class segments {
 public:
  /// No segment.
  segments() = default;

  /// @throws bad_input naming the first negative length, or the segment at which the total overflows.
  template <std::integral Length>
  segments(std::initializer_list<Length> lengths) : segments(lengths.begin(), lengths.end()) {}

  /// Lengths of several types, as in segments{rows * columns, 10}. @throws bad_input as above.
  template <std::integral... Lengths>
    requires(sizeof...(Lengths) > 1)
  segments(Lengths... lengths) {
    (append(lengths), ...);
  }

  /// @throws bad_input as above.
  template <std::input_iterator Iterator, std::sentinel_for<Iterator> Sentinel>
    requires std::integral<std::iter_value_t<Iterator>>
  segments(Iterator first, Sentinel last) {
    for (; first != last; ++first) append(*first);
  }

  /// @throws bad_input as above.
  template <std::ranges::input_range Range>
    requires(std::integral<std::ranges::range_value_t<Range>> && !std::same_as<std::remove_cvref_t<Range>, segments>)
  explicit segments(Range&& lengths) : segments(std::ranges::begin(lengths), std::ranges::end(lengths)) {}

  /// One segment of the given length.
  static segments whole(std::size_t length) { return {length}; }

  /// How many segments.
  std::size_t size() const { return offsets_.size() - 1; }
  /// The elements of all segments.
  std::size_t total() const { return offsets_.back(); }
  /// The elements of segment k.
  std::size_t length(std::size_t k) const { return offsets_[k + 1] - offsets_[k]; }
  /// Where segment k begins in the gradient.
  std::size_t offset(std::size_t k) const { return offsets_[k]; }

  /// Converts to a view, for calls that take one.
  operator segments_view() const { return segments_view{offsets_}; }
  friend bool operator==(const segments&, const segments&) = default;

 private:
  void append(std::integral auto length) {
    const auto k = std::to_string(size());
    if (std::cmp_less(length, 0))
      throw bad_input("adasum::segments: segment " + k + " has the negative length " + std::to_string(length));
    const auto count = static_cast<std::size_t>(length);
    if (count > std::numeric_limits<std::size_t>::max() - total())
      throw bad_input("adasum::segments: the total length overflows at segment " + k);
    offsets_.push_back(total() + count);
  }

  std::vector<std::size_t> offsets_{0};
};

/// One contiguous window of flat vectors, seen through its segments. It may begin and end inside a segment. Kernels get
/// pointers to the element at `origin` of each vector (so a buffer may hold less than the whole vector).
struct slice {
  segments_view segments;  ///< of the whole vectors
  index_range range;       ///< the elements of the window
  std::size_t origin = 0;  ///< the element to which kernels get pointers

  /// The part of segment k that lies in the window, counted from the origin; possibly empty.
  constexpr index_range local(std::size_t k) const {
    const auto [begin, end] = segments.range(k);
    const auto clip = [this](std::size_t x) { return std::clamp(x, range.begin, range.end) - origin; };
    return {clip(begin), clip(end)};
  }

  /// The window's elements that belong to the segments [first, first + count).
  constexpr slice part(std::size_t first, std::size_t count) const {
    const auto some = segments.part(first, count);
    const auto clip = [this](std::size_t x) { return std::clamp(x, range.begin, range.end); };
    return {some, {clip(some.all().begin), clip(some.all().end)}, origin};
  }

  /// Indices [begin, end) of the segments that can have elements in the window.
  constexpr index_range touched() const {
    if (range.empty()) return {0, 0};
    if (range == segments.all()) return {0, segments.size()};  // the usual case, without searching
    const auto offsets = segments.offsets();
    const auto first = std::upper_bound(offsets.begin(), offsets.end(), range.begin) - offsets.begin() - 1;
    const auto last = std::lower_bound(offsets.begin(), offsets.end(), range.end) - offsets.begin();
    return {static_cast<std::size_t>(first), static_cast<std::size_t>(last)};
  }
};

/// All elements of all segments.
constexpr slice whole(segments_view segments) { return {segments, segments.all(), 0}; }

}  // namespace adasum
