// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/detail/engine/machine_times.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstddef>

namespace test_of_detail_engine_machine_times {

using adasum::detail::link_times;
using adasum::detail::machine_times;
using adasum::detail::timed_lengths;
using adasum::schedules::machine;
using adasum::schedules::rate;

namespace {

constexpr std::size_t together = adasum::detail::timed_together;

/// What exchanges take on a link by the model, times 1 ± noise.
link_times times_on(const machine::link& link, double noise = 0) {
  link_times found;
  for (std::size_t i = 0; i < timed_lengths.size(); ++i) {
    const auto bytes = timed_lengths[i].bytes;
    const double exact = link.latency + link.per_message + static_cast<double>(bytes) * link.per_byte.of(bytes) +
                         (static_cast<double>(bytes) > link.eager_bytes ? link.handshake : 0);
    found.one[i] = exact * (i % 2 ? 1 + noise : 1 - noise);
  }
  found.many = link.latency + static_cast<double>(together) * link.per_message +
               static_cast<double>(timed_lengths[0].bytes) * link.per_byte.of(0);
  return found;
}

machine::link fitted(const link_times& times) { return adasum::detail::fit_link(times); }

/// Of two numbers.
bool near(double got, double expected, double relative) { return std::abs(got - expected) <= relative * expected; }

void check_near(const machine::link& got, const machine::link& expected, double relative) {
  CHECK(near(got.latency, expected.latency, relative));
  CHECK(near(got.per_message, expected.per_message, relative));
  CHECK(near(got.handshake, expected.handshake, relative));
  for (std::size_t i = 0; i < rate::lengths.size(); ++i)
    CHECK(near(got.per_byte.at[i], expected.per_byte.at[i], relative));
}

const machine::link ethernet{.latency = 40e-6, .per_message = 2e-6, .per_byte = 8e-9},
    node{.latency = 0.4e-6,
         .per_message = 0.1e-6,
         .per_byte = rate(std::array{0.06e-9, 0.08e-9, 0.1e-9, 0.16e-9}),
         .eager_bytes = 2048,
         .handshake = 3e-6};

}  // namespace

TEST_CASE("constants of a link are found again from exact times") {
  check_near(fitted(times_on(node)), node, 1e-6);
  CHECK(fitted(times_on(node)).eager_bytes == 3072);  // between lengths that were measured
  auto without = fitted(times_on(ethernet));
  CHECK(without.handshake < 1e-9);
  without.handshake = 0;
  check_near(without, ethernet, 1e-6);
}

TEST_CASE("times that are 5 % off: what the model says of an exchange is not 15 % off") {
  for (const auto& link : {node, ethernet}) {
    const auto exact = times_on(link), model = times_on(fitted(times_on(link, 0.05)));
    for (std::size_t i = 0; i < exact.one.size(); ++i) CHECK(near(model.one[i], exact.one[i], 0.15));
  }
}

TEST_CASE("times that no model explains still give constants that are positive") {
  link_times odd;
  odd.one.fill(1e-6);  // long messages take as long as short ones
  odd.many = 1e-7;
  for (const bool falling : {false, true}) {
    if (falling)
      for (std::size_t i = 0; i < odd.one.size(); ++i) odd.one[i] = 1e-3 / static_cast<double>(i + 1);
    const auto found = fitted(odd);
    for (const double one : {found.latency, found.per_message}) CHECK(one > 0);
    for (const double one : found.per_byte.at) CHECK(one > 0);
    CHECK(found.handshake >= 0);
  }
}

TEST_CASE("lengths that were not measured take the rate of shorter ones") {
  auto times = times_on(node);
  times.one[times.one.size() - 1] = times.one[times.one.size() - 2] = 0;
  const auto found = fitted(times);
  CHECK(near(found.per_byte.at[1], 0.08e-9, 1e-6));
  CHECK(found.per_byte.at[2] == found.per_byte.at[1]);
  CHECK(found.per_byte.at[3] == found.per_byte.at[1]);
}

TEST_CASE("a machine from times: of the slowest rank, and with one link for both where only one was measured") {
  machine_times times, slower;
  times.inside = times_on(node);
  for (std::size_t i = 0; i < machine_times::rates; ++i) times.kernels[i] = {1e-10, 2e-11, 3e-11};
  slower.inside = times_on(ethernet);
  const auto alone = adasum::detail::machine_from(times, 2, 4);
  CHECK(alone.across == alone.inside);
  CHECK(alone.per_pair_element.of(0) == 1e-10);
  CHECK(alone.per_product.of(0) == 2e-11);
  CHECK(alone.per_term.of(0) == 3e-11);
  CHECK(alone.shared == machine{}.shared);  // not measured
  times.take_slower(slower);
  CHECK(near(adasum::detail::machine_from(times, 2, 4).inside.latency, ethernet.latency, 1e-6));
  times.across = times_on(node);
  CHECK(near(adasum::detail::machine_from(times, 2, 4).across.latency, node.latency, 1e-6));
}

TEST_CASE("shared memory: the rates that explain reductions there") {
  using namespace adasum::schedules;
  machine_times times;
  times.inside = times_on(node);
  for (auto& one : times.kernels) one = {1e-10, 2e-11, 3e-11};
  machine expected;
  expected.per_pair_element = 1e-10;
  expected.per_product = 2e-11;
  expected.per_term = 3e-11;
  expected.shared = {.barrier = 0.5e-6, .per_byte = rate(std::array{1e-11, 2e-11, 3e-11, 5e-11})};
  for (const int size : {2, 3, 8}) {
    times.barrier = expected.shared.barrier;
    for (std::size_t i = 0; i < machine_times::rates; ++i)
      times.in_place[i] = seconds(in_place_cost(size, {.length = rate::lengths[i] / 4, .element_size = 4}), expected);
    const auto found = adasum::detail::machine_from(times, size, 4).shared;
    CHECK(found.barrier == expected.shared.barrier);
    for (std::size_t i = 0; i < machine_times::rates; ++i)
      CHECK(near(found.per_byte.at[i], expected.shared.per_byte.at[i], 1e-6));
  }
}

}  // namespace test_of_detail_engine_machine_times
