// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Unusable input: an exception that names what and the sizes, before any byte of the caller's data changes.
#include <adasum/combine.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/pair.hpp>
#include <adasum/tree.hpp>

#include <doctest/doctest.h>

#include <array>
#include <initializer_list>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/sizes.hpp"

namespace test_of_bad_input {

using namespace adasum;

namespace {

const serial_space exec;

/// One block of memory from which gradients are cut, so that any change anywhere is seen.
struct memory {
  std::vector<float> floats = std::vector<float>(100);
  memory() { std::iota(floats.begin(), floats.end(), 1.0f); }
  std::span<float> at(std::size_t from, std::size_t count) { return std::span(floats).subspan(from, count); }
};

/// Calls, and expects an exception with all of these in its message, and the memory as it was.
template <class Call>
void check_refused(Call call, std::initializer_list<std::string_view> parts) {
  memory data;
  const auto before = data.floats;
  std::string message;
  try {
    call(data);
  } catch (const std::exception& error) {
    message = error.what();
  }
  CAPTURE(message);
  for (const auto part : parts) {
    CAPTURE(part);
    CHECK(message.find(part) != std::string::npos);
  }
  CHECK(data.floats == before);
}

}  // namespace

TEST_CASE("the exceptions derive from std::runtime_error by way of adasum::error") {
  CHECK(std::is_base_of_v<std::runtime_error, error>);
  CHECK(std::is_base_of_v<error, bad_input>);
  memory data;
  CHECK_THROWS_AS(adasum_pair(exec, data.at(0, 4), data.at(4, 5), data.at(10, 4)), bad_input);
}

TEST_CASE("unequal lengths") {
  check_refused([](memory& m) { adasum_pair(exec, m.at(0, 10), m.at(10, 11), m.at(30, 10)); },
                {"adasum_pair", "gradient 1", "11", "10"});
  check_refused([](memory& m) { adasum_pair(exec, m.at(0, 10), m.at(10, 10), m.at(30, 9)); },
                {"gradient 0", "10 elements", "output has 9"});
  check_refused([](memory& m) { adasum_tree(exec, std::array{m.at(0, 7), m.at(7, 7), m.at(14, 8)}, m.at(30, 7)); },
                {"adasum_tree", "gradient 2", "8", "7"});
}

TEST_CASE("segments that do not add up to the length") {
  for (const auto& cut : {segments{4, 5}, segments{5, 6}, segments{0}, segments(std::vector<int>{})})
    check_refused([&](memory& m) { adasum_pair(exec, m.at(0, 10), m.at(10, 10), m.at(20, 10), cut); },
                  {"segments hold " + std::to_string(cut.total()), "10"});
  check_refused(
      [](memory& m) { combine(exec, std::array{m.at(0, 10)}, m.at(20, 10), rules::adasum{}, segments{3, 3}); },
      {"segments hold 6", "10"});
}

TEST_CASE("boundaries that are not boundaries") {
  const std::vector<std::size_t> late{1, 10}, falling{0, 7, 5, 10};
  for (const auto& view : {segments_view{late}, segments_view{falling}, segments_view{}})
    check_refused([&](memory& m) { adasum_pair(exec, m.at(0, 10), m.at(10, 10), m.at(20, 10), view); },
                  {"begin at 0", "not decrease"});
}

TEST_CASE("an output that overlaps an input in part") {
  for (const std::size_t from : adasum::test::sizes{1, 5, 9})
    check_refused([&](memory& m) { adasum_pair(exec, m.at(0, 10), m.at(40, 10), m.at(from, 10)); },
                  {"overlaps gradient 0 in part", "10"});
  check_refused([](memory& m) { adasum_pair(exec, m.at(40, 10), m.at(20, 10), m.at(15, 10)); },
                {"overlaps gradient 1"});
  check_refused([](memory& m) { adasum_tree(exec, std::array{m.at(0, 10), m.at(10, 10), m.at(20, 10)}, m.at(29, 10)); },
                {"overlaps gradient 2"});
  // Side by side is apart, and inputs may overlap each other.
  memory m;
  CHECK_NOTHROW(adasum_pair(exec, m.at(0, 10), m.at(20, 10), m.at(10, 10)));
  CHECK_NOTHROW(adasum_pair(exec, m.at(0, 10), m.at(5, 10), m.at(40, 10)));
}

TEST_CASE("null pointers") {
  const std::span<float> null(static_cast<float*>(nullptr), 10);
  check_refused([&](memory& m) { adasum_pair(exec, null, m.at(10, 10), m.at(20, 10)); },
                {"gradient 0 is a null pointer", "10"});
  check_refused([&](memory& m) { adasum_pair(exec, m.at(0, 10), m.at(10, 10), null); },
                {"the output is a null pointer", "10"});
  const std::span<float> nothing;
  CHECK_NOTHROW(adasum_pair(exec, nothing, nothing, nothing));
  CHECK_NOTHROW(adasum_tree(exec, std::array{nothing, nothing, nothing}, nothing, segments{0, 0}));
}

TEST_CASE("no gradient at all") {
  check_refused([](memory& m) { adasum_tree(exec, std::vector<std::span<float>>{}, m.at(0, 10)); }, {"no gradient"});
  check_refused(
      [](memory& m) { combine(exec, std::vector<std::vector<float>>{}, m.at(0, 1), rules::adasum{}, segments{1}); },
      {"no gradient"});
}

}  // namespace test_of_bad_input
