// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <adasum/core/config.hpp>

#include <ATen/ATen.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "uploads.hpp"

namespace adasum::detail::aten {

/// Ranges of columns, one behind the other or with gaps between them.
struct column_ranges {
  std::vector<std::int64_t> begin, length;

  void add(std::int64_t first, std::int64_t last) {
    begin.push_back(first);
    length.push_back(std::max<std::int64_t>(last - first, 0));
  }
  std::int64_t size() const { return static_cast<std::int64_t>(begin.size()); }
  std::int64_t longest() const { return length.empty() ? 0 : *std::ranges::max_element(length); }
};

/// How many columns are added at once: of a long range, all but those before the first and behind the last block.
inline constexpr std::int64_t block = 128;

/// The sum of each range, which has no more than `block` columns. [rows, columns] → [rows, ranges]
inline at::Tensor sums_of_short_ranges(const at::Tensor& values, const column_ranges& ranges, uploads& up) {
  const auto rows = values.size(0), longest = ranges.longest();
  if (longest == 0) return at::zeros({rows, ranges.size()}, values.options());
  const auto begin = up.numbers(ranges.begin).unsqueeze(1), length = up.numbers(ranges.length).unsqueeze(1);
  const auto column = at::arange(longest, begin.options());
  const auto outside = column.ge(length);
  const auto where = column.add(begin).masked_fill_(outside, 0);
  return values.index_select(1, where.flatten()).view({rows, ranges.size(), longest}).masked_fill_(outside, 0).sum(2);
}

/// The sum of each range, with a number of operators that depends on the longest one alone. Without atomic additions: the order
/// of additions follows from the ranges, so that the same values give the same bits. [rows, columns] → [rows, ranges]
inline at::Tensor sums_of_ranges(const at::Tensor& values, const column_ranges& ranges, uploads& up) {
  if (ranges.longest() <= block) return sums_of_short_ranges(values, ranges, up);
  column_ranges blocks;  // the whole blocks in each range
  column_ranges ends;    // what is before these, of all ranges, and then what is behind
  for (std::size_t k = 0; k < ranges.begin.size(); ++k) {
    const auto begin = ranges.begin[k], end = begin + ranges.length[k];
    const auto first = std::min((begin + block - 1) / block, end / block);
    blocks.add(first, end / block);
    ends.add(begin, std::min(end, std::max(begin, first * block)));
  }
  for (std::size_t k = 0; k < ranges.begin.size(); ++k) {
    const auto end = ranges.begin[k] + ranges.length[k];
    ends.add(ends.begin[k] + ends.length[k] + blocks.length[k] * block, end);
  }
  const auto rows = values.size(0), count = values.size(1) / block;
  const auto of_blocks = values.narrow(1, 0, count * block).view({rows, count, block}).sum(2);
  return sums_of_short_ranges(values, ends, up)
      .view({rows, 2, ranges.size()})
      .sum(1)
      .add_(sums_of_ranges(of_blocks, blocks, up));
}

}  // namespace adasum::detail::aten
