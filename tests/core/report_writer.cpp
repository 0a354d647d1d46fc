// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/core/report_writer.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <utility>
#include <vector>

namespace test_of_core_report_writer {

using adasum::report;
using adasum::detail::report_writer;

namespace {

/// Norms and weights that say whose and where they are.
report_writer written(std::size_t contributions, std::size_t segments) {
  report_writer writer(contributions, segments, "a rule", "a schedule");
  writer.set_measured(true);
  for (std::size_t i = 0; i < contributions; ++i)
    for (std::size_t k = 0; k < segments; ++k)
      writer.row(i)[k] = {static_cast<double>(10 * i + k), static_cast<double>(100 * i + k)};
  return writer;
}

}  // namespace

TEST_CASE("what is written is what a report says") {
  auto writer = written(3, 2);
  writer.result_norms()[1] = 7;
  writer.set_bytes_sent(64);
  writer.set_fallbacks(2);
  writer.count_recombined_segment();
  CHECK(writer.rows(1, 3).size() == 4);
  CHECK(writer.rows(1, 3)[2].norm == 20);
  const report found = std::move(writer).release();
  CHECK(found.rule() == "a rule");
  CHECK(found.schedule() == "a schedule");
  CHECK(found.measured());
  CHECK(found.norm(2, 1) == 21);
  CHECK(found.weight(2, 1) == 201);
  CHECK(found.result_norm(1) == 7);
  CHECK(found.bytes_sent() == 64);
  CHECK(found.fallbacks() == 2);
  CHECK(found.recombined_segments() == 1);
}

TEST_CASE("what is counted starts from nothing in each run") {
  auto writer = written(2, 1);
  writer.reserve_excluded();
  writer.exclude(1);
  writer.count_recombined_segment();
  CHECK(writer.get().excluded() == std::vector{1});
  writer.begin();
  CHECK(writer.get().excluded().empty());
  CHECK(writer.get().recombined_segments() == 0);
  CHECK(writer.get().norm(1, 0) == 10);
}

TEST_CASE("excluded gradients weigh nothing, and are not finite where they are flagged") {
  auto writer = written(2, 3);
  writer.exclude(1);
  writer.finish_excluded(std::array<unsigned char, 6>{0, 0, 0, 0, 1, 0});
  const auto& found = writer.get();
  for (std::size_t k = 0; k < 3; ++k) CHECK(found.weight(1, k) == 0);
  CHECK(found.weight(0, 2) == 2);
  CHECK(found.norm(1, 0) == 0);
  CHECK(std::isinf(found.norm(1, 1)));
  CHECK(found.nonfinite() == std::vector<adasum::nonfinite_input>{{1, 1}});
}

TEST_CASE("rows in the order of leaves become rows of ranks") {
  auto writer = written(3, 2);
  writer.reorder(std::array{2, 0, 1});
  CHECK(writer.get().norm(2, 0) == 0);
  CHECK(writer.get().norm(0, 1) == 11);
  CHECK(writer.get().norm(1, 0) == 20);
}

}  // namespace test_of_core_report_writer
