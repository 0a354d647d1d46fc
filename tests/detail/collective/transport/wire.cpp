// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/detail/collective/transport/wire.hpp>
#include <adasum/exec/serial.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "support/random_gradients.hpp"

namespace test_of_detail_collective_transport_wire {

using namespace adasum;
using namespace adasum::test;

namespace {

const serial_space space;
using wire_of_floats = detail::wire<float, serial_space>;

/// The elements as they are after a message from one rank to another.
std::vector<float> sent(wire_format format, const std::vector<float>& elements) {
  wire_of_floats from(space, format, elements.size(), 0), to(space, format, 0, elements.size());
  std::vector<float> received(elements.size());
  from.begin();
  to.begin();
  const auto message = from.pack(space, 1, elements);
  const auto buffer = to.buffer_for(0, received);
  REQUIRE(message.bytes.size() == buffer.bytes.size());
  std::ranges::copy(message.bytes, buffer.bytes.begin());
  to.unpack(space);
  return received;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return std::ranges::equal(std::as_bytes(a), std::as_bytes(b));
}

constexpr wire_format sixteen_bits[] = {wire_format::bfloat16, wire_format::binary16};

}  // namespace

TEST_CASE("elements as they are: sent from where they lie, received where they are wanted") {
  wire_of_floats wire(space, wire_format::same, 0, 0);
  std::vector<float> elements{1, 2, 3};
  CHECK_FALSE(wire.rounds());
  const auto message = wire.pack(space, 4, elements);
  const auto buffer = wire.buffer_for(5, elements);
  CHECK(message.peer == 4);
  CHECK(buffer.peer == 5);
  for (const auto where : {message.where, buffer.where}) CHECK(where == memory_kind::space);
  CHECK(message.bytes.data() == std::as_bytes(std::span(elements)).data());
  CHECK(buffer.bytes.data() == std::as_bytes(std::span(elements)).data());
  CHECK(buffer.bytes.size() == 12);
  wire.round(space, elements);
  CHECK(elements == std::vector<float>{1, 2, 3});
}

TEST_CASE("16 bits: within one rounding, at any length") {
  for (const auto format : sixteen_bits)
    for (const std::size_t length : {0u, 1u, 7u, 64u, 1001u}) {
      const auto elements = random_gradients<float>(1, length, length).front();
      const auto received = sent(format, elements);
      // Half a unit in the last of 8 and 11 binary digits. Half has a smallest step, 2^-24.
      const double unit = format == wire_format::bfloat16 ? 0x1p-8 : 0x1p-11;
      const double tiny = format == wire_format::bfloat16 ? 0 : 0x1p-25;
      for (std::size_t x = 0; x < length; ++x)
        CHECK(std::abs(double{received[x]} - double{elements[x]}) <= std::max(unit * std::abs(elements[x]), tiny));
      CHECK(same_bits(sent(format, received), received));  // nothing is left to round
    }
}

TEST_CASE("16 bits: the bound is reached half way between two numbers; what fits is kept; half overflows") {
  CHECK(sent(wire_format::bfloat16, {1 + 0x1p-8f, 1 + 0x3p-8f}) == std::vector<float>{1, 1 + 0x1p-6f});  // to even
  CHECK(sent(wire_format::binary16, {1 + 0x1p-11f, 1 + 0x3p-11f}) == std::vector<float>{1, 1 + 0x1p-9f});
  for (const auto format : sixteen_bits)
    CHECK(sent(format, {0, -0.5f, 96, -0x1p-14f}) == std::vector<float>{0, -0.5f, 96, -0x1p-14f});
  CHECK(sent(wire_format::binary16, {65504, 65520}) ==
        std::vector<float>{65504, std::numeric_limits<float>::infinity()});
  CHECK(std::isfinite(sent(wire_format::bfloat16, {1e38f}).front()));
}

TEST_CASE("round: what this rank keeps is what the others get, also where it is longer than one message") {
  const auto elements = random_gradients<float>(1, 100, 3).front();
  for (const auto format : sixteen_bits)
    for (const std::size_t packed : {0u, 1u, 33u, 100u, 200u}) {
      CAPTURE(packed);
      wire_of_floats wire(space, format, packed, 0);
      auto kept = elements;
      wire.round(space, kept);
      CHECK(same_bits(kept, sent(format, elements)));
    }
}

TEST_CASE("several messages of one exchange lie side by side, exchange after exchange") {
  wire_of_floats wire(space, wire_format::binary16, 5, 5, 2);
  wire.reserve(2);
  for (int exchange = 0; exchange < 3; ++exchange) {
    const std::vector<float> first{1, 2}, second{3, 4, 5};
    std::vector<float> to_first(2), to_second(3);
    wire.begin();
    const auto a = wire.pack(space, 1, first), b = wire.pack(space, 2, second);
    const auto from_a = wire.buffer_for(1, to_first), from_b = wire.buffer_for(2, to_second);
    CHECK(a.bytes.size() == 4 + wire_of_floats::losses_size);
    CHECK(b.bytes.size() == 6 + wire_of_floats::losses_size);
    std::ranges::copy(b.bytes, from_b.bytes.begin());
    std::ranges::copy(a.bytes, from_a.bytes.begin());
    wire.unpack(space);
    CHECK(to_first == first);
    CHECK(to_second == second);
  }
}

TEST_CASE("what was lost follows the elements: in this message, and what the vector had lost before") {
  wire_of_floats wire(space, wire_format::binary16, 5, 5, 2);
  const std::vector<float> first{1e5f, 2}, second{3, 1e-9f, -1e-9f};
  std::vector<float> to_first(2), to_second(3);
  wire.begin();
  const auto a = wire.pack(space, 1, first, {{10, 20}, 0}), b = wire.pack(space, 2, second, {{100, 200}, 7});
  std::ranges::copy(a.bytes, wire.buffer_for(1, to_first).bytes.begin());
  std::ranges::copy(b.bytes, wire.buffer_for(2, to_second).bytes.begin());
  const auto told = wire.unpack(space);
  CHECK(told.counted == wire_losses{111, 222});
  CHECK(told.uncounted == 7);
  CHECK(to_first == std::vector<float>{std::numeric_limits<float>::infinity(), 2});
  std::vector<float> kept{1, 1e5f, 1e-9f, 1e-9f, 5, 6, 1e-9f};  // longer than the buffer
  CHECK(wire.round(space, kept).counted == wire_losses{1, 3});
  CHECK(wire.round(space, kept).counted == wire_losses{});
}

}  // namespace test_of_detail_collective_transport_wire
