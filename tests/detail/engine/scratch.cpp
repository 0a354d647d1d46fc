// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <adasum/adasum.hpp>

#include "support/random_gradients.hpp"
#include "support/sizes.hpp"
#include "support/thread_reduction.hpp"

namespace test_of_detail_engine_scratch {

/// The memory for elements that a plan holds beside the gradient.

using namespace adasum::test;

namespace {

/// Counts the bytes that are asked for.
struct counting_space : adasum::serial_space {
  std::size_t* bytes;
  friend bool operator==(const counting_space&, const counting_space&) = default;

  template <adasum::scalar T>
  auto allocate(std::size_t count) const {
    *bytes += count * sizeof(T);
    return serial_space::allocate<T>(count);
  }
};

// A 20th of these has more elements than are sent with records at their end.
const adasum::segments segs{16'000, 0, 112, 25'008};
const std::size_t length = segs.total();

/// Of each rank, in floats, after a run.
template <class Schedule>
std::vector<double> scratch(int size, const Schedule& order, adasum::wire_format wire = adasum::wire_format::same,
                            const adasum::segments& cut = segs) {
  const adasum::options choices{.check_agreement = false, .wire = wire};
  static const auto some = random_gradients<float>(3, length, 1);
  const auto ranks = on_ranks(size, [&](const adasum::thread_communicator& comm) {
    std::size_t bytes = 0;
    auto gradient = some[static_cast<std::size_t>(comm.rank() % 3)];
    gradient.resize(cut.total());
    auto plan =
        adasum::plan_allreduce<float>(counting_space{{}, &bytes}, comm, cut, adasum::rules::adasum{}, order, choices);
    plan(gradient);
    return static_cast<double>(bytes) / sizeof(float);
  });
  std::vector<double> all;
  for (const auto& rank : ranks) {
    REQUIRE_MESSAGE(rank.value, rank.description());
    all.push_back(*rank.value);
  }
  return all;
}

const auto rank_counts = adasum::test::few_or_all({1, 2, 3, 5, 8, 12}, {1, 2, 3, 4, 5, 7, 8, 12, 16});

/// Parts are nearly equal: P - 1 times the largest of P parts is at most N + P.
double uneven(int size) { return size; }

/// Doubling holds the gradients of all ranks that meet at a level but this one's; another schedule no more than one. With
/// two parts at most, an odd number of ranks doubles.
double most_floats(int size, const std::string& schedule) {
  const double one = static_cast<double>(length) + uneven(size);
  const auto doubles = {"recursive_doubling", "recursive_halving{.most_parts = 2}", "automatic"};
  if (std::ranges::find(doubles, schedule) == doubles.end()) return one;
  const int met = size % 7 == 0 ? 7 : size % 5 == 0 ? 5 : size % 3 == 0 ? 3 : 2;
  return (met - 1) * one;
}

}  // namespace

TEST_CASE("every schedule but doubling needs at most as much as the gradient, and some rounding, beside it") {
  for_each_schedule([](const auto& order, const std::string& name) {
    CAPTURE(name);
    for (const int size : rank_counts) {
      CAPTURE(size);
      for (const double floats : scratch(size, order)) CHECK(floats <= most_floats(size, name));
    }
  });
}

TEST_CASE("doubling needs exactly the other ranks' gradients; halving half of one; splitting by 4 three quarters") {
  for (const int size : {4, 16}) {
    CAPTURE(size);
    const auto n = static_cast<double>(length);  // a multiple of 16
    for (const double floats : scratch(size, adasum::schedules::recursive_doubling{})) CHECK(floats == n);
    for (const double floats : scratch(size, adasum::schedules::recursive_halving{})) CHECK(floats == n / 2);
    for (const double floats : scratch(size, adasum::schedules::recursive_halving{.radix = 4}))
      CHECK(floats == n * 3 / 4);
    for (const double floats : scratch(size, adasum::schedules::all_to_all{})) CHECK(floats == n * (size - 1) / size);
  }
  const auto n = static_cast<double>(length);
  for (const int size : {3, 5, 7})
    for (const double floats : scratch(size, adasum::schedules::recursive_doubling{})) CHECK(floats == n * (size - 1));
  for (const double floats : scratch(20, adasum::schedules::recursive_halving{.radix = 4})) CHECK(floats == n * 3 / 4);
}

TEST_CASE("short messages: what is sent with records at its end, and these once more where they arrive") {
  // 1,000 floats by doubling: the records of half of the gradients, of 16 bytes for each segment, come with the last one,
  // and as many are sent. By halving, the last slices have their share of the floats.
  const adasum::segments few{900, 100};
  const auto of = [&](int size, const auto& order) { return scratch(size, order, adasum::wire_format::same, few); };
  for (const int size : {4, 16}) {
    CAPTURE(size);
    const double records = size / 2 * 2 * 4;
    for (const double floats : of(size, adasum::schedules::recursive_doubling{})) CHECK(floats == 2 * (1000 + records));
  }
  for (const double floats : of(4, adasum::schedules::recursive_halving{})) CHECK(floats == 500 + 250 + 2 * 2 * 4);
  for (const double floats : of(2, adasum::schedules::recursive_doubling{})) CHECK(floats == 1000);
}

TEST_CASE("16-bit messages need as much again: what is sent, and what is received, at half the size") {
  for_each_schedule([](const auto& order, const std::string& name) {
    CAPTURE(name);
    for (const int size : rank_counts) {
      CAPTURE(size);
      for (const double floats : scratch(size, order, adasum::wire_format::bfloat16))
        CHECK(floats <= 2 * most_floats(size, name));
    }
  });
}

}  // namespace test_of_detail_engine_scratch
