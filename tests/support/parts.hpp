// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <adasum/core/parts.hpp>
#include <adasum/core/report.hpp>
#include <adasum/core/segments.hpp>
#include <adasum/schedules/partition.hpp>

#include "random_gradients.hpp"
#include "thread_reduction.hpp"

namespace adasum::test {

/// Parts of so many elements for so many ranks: even, growing, all for one rank in the middle, every second one empty.
inline std::vector<parts> some_parts(std::size_t length, int size) {
  const auto ranks = static_cast<std::size_t>(size);
  std::vector<std::size_t> even, growing, one, odd;
  std::size_t at = 0;
  for (std::size_t r = 0; r < ranks; ++r) {
    even.push_back(detail::part_of({0, length}, ranks, r).size());
    const auto end = r + 1 == ranks ? length : length * (r + 1) * (r + 1) / (ranks * ranks);
    growing.push_back(end - at);
    at = end;
    one.push_back(r == ranks / 2 ? length : 0);
    odd.push_back(r % 2 == 0 ? detail::part_of({0, length}, (ranks + 1) / 2, r / 2).size() : 0);
  }
  return {parts(even), parts(growing), parts(one), parts(odd)};
}

/// Whether these elements have the same bits.
template <class T>
bool same_elements(std::span<const T> a, const std::vector<T>& b, index_range range) {
  return a.size() == b.size() &&
         (range.empty() || std::memcmp(a.data() + range.begin, b.data() + range.begin, range.size() * sizeof(T)) == 0);
}
template <class T>
bool same_elements(const std::vector<T>& a, const std::vector<T>& b, index_range range) {
  return same_elements(std::span<const T>(a), b, range);
}

/// Whether two reports say the same of the gradients and the result. Where norms of the result are measured part by part,
/// their last digits may differ.
inline bool same_report(const report& a, const report& b) {
  const auto same = [](double x, double y) {
    return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
  };
  const auto near = [&](double x, double y) { return same(x, y) || std::abs(x - y) <= 1e-6 * std::abs(y); };
  bool found = a.segments() == b.segments() && a.contributions() == b.contributions() && a.rule() == b.rule() &&
               a.schedule() == b.schedule() && a.measured() == b.measured() && a.excluded() == b.excluded() &&
               a.nonfinite() == b.nonfinite() && a.fallbacks() == b.fallbacks() && a.wire() == b.wire();
  for (std::size_t k = 0; found && k < a.segments(); ++k) {
    found = near(a.result_norm(k), b.result_norm(k)) && near(a.orthogonality(k), b.orthogonality(k));
    for (std::size_t i = 0; found && i < a.contributions(); ++i)
      found = same(a.norm(i, k), b.norm(i, k)) && same(a.weight(i, k), b.weight(i, k));
  }
  return found;
}

#ifdef ADASUM_TEST_SANITIZED  // where each run takes ten times as long
inline const std::vector<int> rank_counts_for_parts{2, 3, 4};
#else
inline const std::vector<int> rank_counts_for_parts{1, 2, 3, 4, 5, 6, 8, 11, 12};
#endif

/// What a rank finds wrong; empty if nothing.
using complaints = std::string;

inline void require_none(const std::vector<outcome<complaints>>& ranks) {
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    REQUIRE_MESSAGE(ranks[r].value, "rank ", r, " ", ranks[r].description());
    CHECK_MESSAGE(ranks[r].value->empty(), "rank ", r, ": ", *ranks[r].value);
  }
}

/// visit(gradients, segments that end within parts) for each number of ranks.
template <class Visitor>
void for_each_dealt_gradient(const Visitor& visit) {
  for (const int size : rank_counts_for_parts)
    for (const std::size_t length : {0u, 7u, 601u}) {
      if (length == 0 && size != 3) continue;
      CAPTURE(size);
      CAPTURE(length);
      const auto ranks = static_cast<std::size_t>(size);
      visit(random_gradients<float>(ranks, length, ranks + length),
            segments{length / 7, std::size_t{0}, length / 2, length - length / 7 - length / 2});
    }
}

}  // namespace adasum::test
