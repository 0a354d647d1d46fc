// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "error.hpp"

namespace adasum::detail {

// ── what the public calls ask of lists ──
// Without <ranges>, which takes as long to read as much of the library.

namespace range_access {
using std::begin;
using std::end;

template <class Range>
constexpr auto begin_of(Range& range) -> decltype(begin(range)) {
  return begin(range);
}
template <class Range>
constexpr auto end_of(Range& range) -> decltype(end(range)) {
  return end(range);
}
}  // namespace range_access

template <class Range>
using iterator_of = decltype(range_access::begin_of(std::declval<Range&>()));
template <class Range>
using sentinel_of = decltype(range_access::end_of(std::declval<Range&>()));

/// Anything with a beginning and an end that can be read once, in order.
template <class Range>
concept input_range =
    std::input_iterator<iterator_of<Range>> && std::sentinel_for<sentinel_of<Range>, iterator_of<Range>>;

}  // namespace adasum::detail

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
    return segments_view{{offsets_.data() + first, count + 1}};
  }
  /// The boundaries, one more than there are segments.
  constexpr std::span<const std::size_t> offsets() const { return offsets_; }

 private:
  std::span<const std::size_t> offsets_;
};

namespace detail {

/// Where the next part, of the given length, ends.
/// @param is_negative  the length is, and was converted to std::size_t
/// @param owner, part  for messages: "adasum::segments", "segment"
/// @throws bad_input   naming the part
void append_length(std::vector<std::size_t>& offsets, std::size_t length, bool is_negative, const char* owner,
                   const char* part);

/// The same for any integer.
template <std::integral Length>
void append_length(std::vector<std::size_t>& offsets, Length length, const char* owner, const char* part) {
  append_length(offsets, static_cast<std::size_t>(length), std::cmp_less(length, 0), owner, part);
}

template <class Range>
concept range_of_lengths = input_range<Range> && std::integral<std::iter_value_t<iterator_of<Range>>>;

/// How many boundaries, which do not decrease, are at most x.
constexpr std::size_t boundaries_up_to(std::span<const std::size_t> offsets, std::size_t x) {
  std::size_t begin = 0, end = offsets.size();
  while (begin < end) {
    const auto middle = begin + (end - begin) / 2;
    if (offsets[middle] <= x)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}

}  // namespace detail

/// @cond internal
namespace detail {
/// Consecutive parts of a flat vector, by their lengths. Constructors throw a bad_input that names the first negative length,
/// or the part at which the total overflows.
/// @tparam Words  how messages call it, and one part
template <class Words>
class cut_by_lengths {
 public:
  cut_by_lengths() = default;
  template <std::integral Length>
  cut_by_lengths(std::initializer_list<Length> lengths) : cut_by_lengths(lengths.begin(), lengths.end()) {}
  /// Lengths of several types, as in {rows * columns, 10}.
  template <std::integral... Lengths>
    requires(sizeof...(Lengths) > 1)
  cut_by_lengths(Lengths... lengths) {
    (append(lengths), ...);
  }
  template <std::input_iterator Iterator, std::sentinel_for<Iterator> Sentinel>
    requires std::integral<std::iter_value_t<Iterator>>
  cut_by_lengths(Iterator first, Sentinel last) {
    for (; first != last; ++first) append(*first);
  }
  template <class Range>
    requires(!std::derived_from<std::remove_cvref_t<Range>, cut_by_lengths> && range_of_lengths<Range>)
  explicit cut_by_lengths(Range&& lengths)
      : cut_by_lengths(range_access::begin_of(lengths), range_access::end_of(lengths)) {}

  /// How many.
  std::size_t size() const { return offsets_.size() - 1; }
  /// The elements of all of them.
  std::size_t total() const { return offsets_.back(); }
  friend bool operator==(const cut_by_lengths&, const cut_by_lengths&) = default;

 protected:
  const std::vector<std::size_t>& boundaries() const { return offsets_; }

 private:
  void append(std::integral auto length) { append_length(offsets_, length, Words::whole, Words::part); }

  std::vector<std::size_t> offsets_{0};
};

struct words_of_segments {
  static constexpr const char *whole = "adasum::segments", *part = "segment";
};
}  // namespace detail
/// @endcond

/// How a flat gradient is cut into segments, for example one for each layer or tensor. Rules weigh each segment separately.
/// Segments may be empty. segments{} has none; size() says how many there are, total() how many elements they have.
///
///     adasum::segments{1024, 10, 4096};                       // lengths, of any integer types
///     adasum::segments(lengths.begin(), lengths.end());       // any iterators over integers
///     adasum::segments(lengths);                              // any range of integers
///
/// A negative length, or a total that overflows, is a bad_input that names the segment.
class segments : public detail::cut_by_lengths<detail::words_of_segments> {
 public:
  using cut_by_lengths::cut_by_lengths;

  /// One segment of the given length.
  static segments whole(std::size_t length) { return {length}; }

  /// The elements of segment k.
  std::size_t length(std::size_t k) const { return boundaries()[k + 1] - boundaries()[k]; }
  /// Where segment k begins in the gradient.
  std::size_t offset(std::size_t k) const { return boundaries()[k]; }

  /// Converts to a view, for calls that take one.
  operator segments_view() const { return segments_view{{boundaries().data(), boundaries().size()}}; }
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
    return {clip(begin) - origin, clip(end) - origin};
  }

  /// The window's elements that belong to the segments [first, first + count).
  constexpr slice part(std::size_t first, std::size_t count) const {
    const auto some = segments.part(first, count);
    return {some, {clip(some.all().begin), clip(some.all().end)}, origin};
  }

  /// Indices [begin, end) of the segments that can have elements in the window.
  constexpr index_range touched() const {
    if (range.empty()) return {0, 0};
    if (range == segments.all()) return {0, segments.size()};  // the usual case, without searching
    const auto offsets = segments.offsets();
    return {detail::boundaries_up_to(offsets, range.begin) - 1, detail::boundaries_up_to(offsets, range.end - 1)};
  }

 private:
  /// The place in the window that is nearest to x.
  constexpr std::size_t clip(std::size_t x) const {
    if (x < range.begin) return range.begin;
    return x > range.end ? range.end : x;
  }
};

/// All elements of all segments.
constexpr slice whole(segments_view segments) { return {segments, segments.all(), 0}; }

}  // namespace adasum

#if ADASUM_DEFINITIONS
#include <limits>
#include <string>

namespace adasum::detail {

ADASUM_INLINE void append_length(std::vector<std::size_t>& offsets, std::size_t length, bool is_negative,
                                 const char* owner, const char* part) {
  const auto which = [&] { return joined({part, " ", offsets.size() - 1}); };
  if (is_negative)
    throw bad_input({owner, ": ", which(), " has the negative length ", static_cast<std::ptrdiff_t>(length)});
  if (length > std::numeric_limits<std::size_t>::max() - offsets.back())
    throw bad_input({owner, ": the total length overflows at ", which()});
  offsets.push_back(offsets.back() + length);
}

}  // namespace adasum::detail
#endif
