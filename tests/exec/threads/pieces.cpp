// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <adasum/core/segments.hpp>
#include <adasum/exec/threads/team.hpp>

#include <cstddef>
#include <vector>

#include "support/sizes.hpp"

namespace test_of_exec_threads_pieces {

using namespace adasum;
using namespace adasum::test;
using detail::threads_backend::cut;
using detail::threads_backend::piece;

TEST_CASE("pieces cover the window once, in order; segments are whole or cut into parts of one length") {
  std::vector<piece> pieces;
  for (const auto& segs :
       {segments{5, 0, 100, 1, 33}, segments{139}, segments(std::vector<int>(139, 1)), segments{0, 0, 60, 79, 0}})
    for (const auto& range : {index_range{0, 139}, {3, 139}, {7, 104}, {5, 5}, {105, 106}})
      for (const std::size_t length : sizes{1, 7, 32, 1000})
        for (const std::size_t origin : {std::size_t{0}, range.begin}) {
          const slice window{segs, range, origin};
          cut(window, length, pieces);
          auto next = range.begin;
          for (std::size_t i = 0; i < pieces.size(); ++i) {
            const auto& one = pieces[i];
            const auto elements = one.of(window);
            CHECK(elements.range.begin == next);
            CHECK(elements.origin == origin);
            next = elements.range.end;
            CHECK(elements.range.size() > 0);
            CHECK(elements.range.size() < 3 * length);
            const auto first = window.local(one.first), last = window.local(one.first + one.count - 1);
            if (one.is_part) {
              CHECK(one.count == 1);
              CHECK(first.size() >= 2 * length);
              CHECK((one.begin - first.begin) % length == 0);
              CHECK((elements.range.size() == length || one.end == first.end));
              CHECK(elements.range.size() >= length);
            } else {
              CHECK(one.begin == first.begin);
              CHECK(one.end == last.end);
              const bool is_last = i + 1 == pieces.size() || pieces[i + 1].is_part;
              CHECK((elements.range.size() >= length || is_last));
            }
          }
          CHECK(next == range.end);
        }
}

}  // namespace test_of_exec_threads_pieces
