// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <iterator>
#include <utility>

/// What the public calls ask of lists, without <ranges>, which takes as long to read as much of the library.
namespace adasum::detail {

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
