// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/core/segments.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <list>
#include <string>
#include <vector>

namespace test_of_core_segments {

using adasum::index_range;
using adasum::segments;
using adasum::segments_view;
using adasum::slice;

TEST_CASE("made from an initializer list, iterators or a range of any integers") {
  const segments expected{1024, 10, 0, 4096};
  CHECK(expected.size() == 4);
  CHECK(expected.total() == 5130);
  CHECK(expected.length(1) == 10);
  CHECK(expected.offset(3) == 1034);

  const std::vector<int> ints{1024, 10, 0, 4096};
  const std::list<std::int64_t> list(ints.begin(), ints.end());
  CHECK(segments(ints) == expected);
  CHECK(segments(ints.begin(), ints.end()) == expected);
  CHECK(segments(list) == expected);
  CHECK(segments(list.begin(), list.end()) == expected);
  CHECK(segments(std::vector<std::uint16_t>{1024, 10, 0, 4096}) == expected);
  const long array[] = {1024, 10, 0, 4096};
  CHECK(segments(array) == expected);
  const segments copy(expected);
  CHECK(copy == expected);
  CHECK(segments::whole(7) == segments{7});
}

TEST_CASE("made from lengths in variables of any integer types, without a warning of narrowing") {
  const int rows = 3;
  const long columns = 5;
  const unsigned bias = 2;
  const std::size_t rest = 7;
  CHECK(segments{rows, rows} == segments{3u, 3u});
  CHECK(segments{rows} == segments::whole(3));
  CHECK(segments{rows * columns, bias, rest, rows} == segments{15, 2, 7, 3});
  const auto of = [](const segments& cut) { return cut.total(); };
  CHECK(of({rows, columns}) == 8);
  CHECK(of({rows}) == 3);
  CHECK(of({}) == 0);
  CHECK_THROWS_WITH_AS((segments{rows, -rows}), doctest::Contains("segment 1 has the negative length -3"),
                       adasum::bad_input);
  CHECK_THROWS_WITH_AS((segments{rest, -rows}), doctest::Contains("segment 1 has the negative length -3"),
                       adasum::bad_input);
  CHECK_THROWS_WITH_AS((segments{-rows}), doctest::Contains("segment 0 has the negative length -3"), adasum::bad_input);
}

TEST_CASE("no segment at all, and empty ones") {
  const segments none(std::vector<std::size_t>{});
  CHECK(none.size() == 0);
  CHECK(none.total() == 0);
  const segments empty{0, 0};
  CHECK(empty.size() == 2);
  CHECK(empty.total() == 0);
  CHECK(segments_view(empty).range(1).empty());
}

TEST_CASE("a negative length or a total that overflows is refused by name") {
  const auto message = [](const std::vector<std::int64_t>& lengths) -> std::string {
    try {
      segments made(lengths);
    } catch (const adasum::bad_input& error) {
      return error.what();
    }
    return "";
  };
  CHECK(message({1, 2, -3}).find("segment 2") != std::string::npos);
  CHECK(message({1, 2, -3}).find("-3") != std::string::npos);
  CHECK(message({1, 2, 3}).empty());

  const auto most = std::numeric_limits<std::size_t>::max();
  CHECK_NOTHROW(segments{most, 0});
  CHECK_THROWS_WITH_AS((segments{5, most - 4}), doctest::Contains("overflows at segment 1"), adasum::bad_input);
}

TEST_CASE("a view gives ranges, and parts that keep their positions") {
  const segments cut{3, 0, 4, 5};
  const segments_view view = cut;
  CHECK(view.size() == 4);
  CHECK(view.range(2) == index_range{3, 7});
  CHECK(view.all() == index_range{0, 12});
  const auto part = view.part(1, 2);
  CHECK(part.size() == 2);
  CHECK(part.range(0) == index_range{3, 3});
  CHECK(part.range(1) == index_range{3, 7});
  CHECK(part.all() == index_range{3, 7});
}

TEST_CASE("a slice clips its segments; touched() leaves out none that has elements") {
  const segments cut{3, 0, 4, 0, 5, 1, 0};
  for (std::size_t begin = 0; begin <= cut.total(); ++begin)
    for (std::size_t end = begin; end <= cut.total(); ++end)
      for (const std::size_t origin : {std::size_t{0}, begin}) {
        const slice window{cut, {begin, end}, origin};
        const auto [first, last] = window.touched();
        std::size_t covered = 0;
        for (std::size_t k = 0; k < cut.size(); ++k) {
          const auto local = window.local(k);
          std::size_t elements = 0;  // counted one by one
          for (auto x = cut.offset(k); x < cut.offset(k) + cut.length(k); ++x)
            if (begin <= x && x < end) {
              if (elements++ == 0) REQUIRE(local.begin == x - origin);
            }
          REQUIRE(local.size() == elements);
          covered += elements;
          if (elements > 0) {
            REQUIRE(first <= k);
            REQUIRE(k < last);
          }
          REQUIRE(window.part(k, 1).range.size() == elements);
          REQUIRE(window.part(k, 1).local(0) == local);
        }
        REQUIRE(covered == end - begin);
        REQUIRE(last <= cut.size());
        if (begin == end) REQUIRE(first == last);
      }
}

}  // namespace test_of_core_segments
