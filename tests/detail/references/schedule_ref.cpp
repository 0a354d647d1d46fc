// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Each entry of the table of a schedule is the member that it stands for, with the arguments as they are.
#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <adasum/detail/references/schedule_ref.hpp>
#include <adasum/rules/mean.hpp>

#include "support/minimal_types.hpp"

namespace test_of_detail_references_schedule_ref {

using namespace adasum;
using namespace adasum::test;

namespace {

struct recording_schedule {
  static constexpr bool supports_gram_rules = true;
  std::string name = "recording";
  int number = 0;
  rules::mean inner{};
  friend bool operator==(const recording_schedule& a, const recording_schedule& b) { return a.number == b.number; }

  std::vector<stage> stages(int rank, int size, const schedule_input& input) const {
    stage only;
    only.members = {number, rank, size};
    only.held = {0, input.length};
    return {only};
  }
  shared_memory_use uses_shared_memory(int size, const schedule_input& input) const {
    return size == 4 && input.length == 40 ? shared_memory_use::preferred : shared_memory_use::required;
  }
  std::vector<int> leaf_ranks(int size, const schedule_input& input) const {
    return {size, static_cast<int>(input.length)};
  }
  std::vector<double> parameters() const { return {5, 6}; }
  friend std::string_view chosen_name_of(detail::own_type, const recording_schedule&, int size,
                                         const schedule_input& input) {
    return size == 4 && input.length == 40 ? "chosen" : "another";
  }
  friend const rules::mean& inner_rule_of(detail::own_type, const recording_schedule& order) { return order.inner; }
};

const schedule_input asked{.length = 40, .element_size = 4};

}  // namespace

TEST_CASE("each entry is the member of its name") {
  recording_schedule order{.number = 1};
  const detail::schedule_ref ref(order);
  CHECK(ref.name() == "recording");
  const auto stages = ref.stages(3, 4, asked);
  REQUIRE(stages.size() == 1);
  CHECK(stages[0].members == std::vector{1, 3, 4});
  CHECK(stages[0].held == index_range{0, 40});
  CHECK(ref.uses_shared_memory(4, asked) == shared_memory_use::preferred);
  CHECK(ref.chosen_name(4, asked) == "chosen");
  CHECK(ref.leaf_ranks(4, asked) == std::vector{4, 40});
  CHECK(ref.parameters() == std::vector{5., 6.});
  CHECK(ref.has_inner_rule());
  CHECK(ref.inner_rule().name() == "mean");

  const recording_schedule same{.name = "same", .number = 1}, other{.number = 2};
  CHECK(ref.equals(same));
  CHECK_FALSE(ref.equals(other));
  CHECK_FALSE(ref.equals(minimal_schedule(1)));
  const auto held = ref.copy();
  order.number = 5;
  CHECK(ref.to(held).stages(3, 4, asked)[0].members[0] == 1);
}

TEST_CASE("what a schedule does not have is not there") {
  const minimal_schedule order(1);
  const detail::schedule_ref ref(order);
  CHECK(ref.uses_shared_memory(4, asked) == shared_memory_use::none);
  CHECK(ref.chosen_name(4, asked) == "minimal schedule");
  CHECK(ref.leaf_ranks(4, asked).empty());
  CHECK(ref.parameters().empty());
  CHECK_FALSE(ref.has_inner_rule());
  CHECK(ref.inner_rule().name() == "none");
}

}  // namespace test_of_detail_references_schedule_ref
