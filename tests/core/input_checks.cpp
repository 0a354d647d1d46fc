// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The checks by themselves. That every call makes them: tests/bad_input.cpp.
#include <adasum/core/input_checks.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace test_of_core_input_checks {

using namespace adasum::detail;
using adasum::bad_input;
using adasum::segments;
using adasum::segments_view;

namespace {

segments_view view_of(const std::vector<std::size_t>& offsets) { return segments_view(std::span(offsets)); }

std::string the_gradient() { return "the gradient"; }

/// Reaches what lies in one array.
struct space_of_one_array {
  static constexpr std::string_view name = "one array";
  std::span<const float> all;
  bool can_reach(const void* address) const { return address >= all.data() && address < all.data() + all.size(); }
};
struct space_that_cannot_tell {};
/// The first, as plans see it.
struct reference_to_one_array {
  std::span<const float> all;
  std::string_view name() const { return space_of_one_array::name; }
  bool can_reach(const void* address) const { return space_of_one_array{all}.can_reach(address); }
};

}  // namespace

TEST_CASE("boundaries begin at 0 and do not decrease") {
  CHECK(are_boundaries(view_of({0, 3, 3, 7})));
  CHECK(are_boundaries(view_of({0})));
  CHECK_FALSE(are_boundaries(view_of({1, 3})));
  CHECK_FALSE(are_boundaries(view_of({0, 5, 4})));
  CHECK_THROWS_WITH_AS(require_boundaries(view_of({0, 5, 4}), "call"),
                       "call: the boundaries of the segments must begin at 0 and not decrease", bad_input);
}

TEST_CASE("segments have as many elements as the gradient") {
  const segments cut{3, 4};
  CHECK_NOTHROW(require_segments_match(cut, 7, "call"));
  CHECK_THROWS_WITH_AS(require_segments_match(cut, 8, "call"),
                       "call: the segments hold 7 elements in all, the gradient has 8", bad_input);
  // Boundaries that are none, though the last one is right.
  CHECK_THROWS_WITH_AS(require_segments_match(view_of({0, 9, 7}), 7, "call"),
                       "call: the boundaries of the segments must begin at 0 and not decrease", bad_input);
}

TEST_CASE("two arrays are the same or apart") {
  std::array<float, 10> storage{};
  const std::span<const float> all = storage;
  const auto check = [&](std::span<const float> input, std::span<const float> out) {
    require_same_or_apart(input, out, the_gradient, "call");
  };
  CHECK_NOTHROW(check(all, all));
  CHECK_NOTHROW(check(all.first(5), all.last(5)));
  CHECK_NOTHROW(check(all.last(5), all.first(5)));
  CHECK_NOTHROW(check(all.subspan(3, 0), all));
  const auto overlaps =
      "call: the output overlaps the gradient in part (6 and 5 elements); they must be the same array or apart";
  CHECK_THROWS_WITH_AS(check(all.first(6), all.last(5)), overlaps, bad_input);
  CHECK_THROWS_WITH_AS(check(all.last(6), all.first(5)), overlaps, bad_input);
}

TEST_CASE("a null pointer has no elements") {
  const auto check = [](std::span<const float> array) { require_not_null(array, the_gradient, "call"); };
  CHECK_NOTHROW(check({}));
  const auto too_long = std::span<const float>(static_cast<const float*>(nullptr), 3);
  CHECK_THROWS_WITH_AS(check(too_long), "call: the gradient is a null pointer with 3 elements", bad_input);
}

TEST_CASE("a space that can tell is asked whether it reaches the array") {
  std::array<float, 4> near{}, far{};
  const space_of_one_array space{near};
  CHECK_NOTHROW(require_reachable(space, std::span<const float>(near), the_gradient, "call"));
  CHECK_THROWS_WITH_AS(
      require_reachable(space, std::span<const float>(far), the_gradient, "call"),
      "call: the gradient does not lie in memory that the execution space \"one array\" can reach (4 elements)",
      bad_input);
  CHECK_NOTHROW(require_reachable(space, std::span<const float>(far).first(0), the_gradient, "call"));
  CHECK_NOTHROW(require_reachable(space_that_cannot_tell{}, std::span<const float>(far), the_gradient, "call"));
}

TEST_CASE("what is wrong with a gradient is a text, and none where nothing is") {
  std::array<float, 4> near{}, far{};
  const reference_to_one_array space{near};
  const auto problem = [&](std::span<const float> gradient, std::size_t length) {
    return problem_with_gradient(space, std::as_bytes(gradient).data(), gradient.size(), length, "plan");
  };
  CHECK(problem(near, 4) == "");
  CHECK(problem(near, 5) == "plan: the gradient has 4 elements, the plan is for 5");
  CHECK(problem({static_cast<const float*>(nullptr), 4}, 4) == "plan: the gradient is a null pointer with 4 elements");
  CHECK(problem(far, 4) ==
        "plan: the gradient does not lie in memory that the execution space \"one array\" can reach (4 elements)");
}

}  // namespace test_of_core_input_checks
