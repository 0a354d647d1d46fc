// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/detail/engine/transport/messenger.hpp>
#include <adasum/exec/serial.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "support/doctest_scalars.hpp"
#include "support/driven_transport.hpp"
#include "support/random_gradients.hpp"

namespace test_of_detail_engine_transport_messenger {

using namespace adasum;
using namespace adasum::test;

namespace {

const serial_space space;
const auto floats = detail::ref_to_space<float>(space);

/// The elements as they are after a message from one rank to another.
std::vector<float> sent(wire_format format, std::vector<float> elements) {
  detail::wire from(floats, format, elements.size(), 0), to(floats, format, 0, elements.size());
  std::vector<float> received(elements.size());
  from.begin();
  to.begin();
  const auto message = from.send(1, bytes_of(elements), elements.size());
  const auto buffer = to.receive(0, bytes_of(received), received.size());
  REQUIRE(message.bytes.size() == buffer.bytes.size());
  std::ranges::copy(message.bytes, buffer.bytes.begin());
  to.unpack();
  return received;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return std::ranges::equal(std::as_bytes(a), std::as_bytes(b));
}

constexpr wire_format sixteen_bits[] = {wire_format::bfloat16, wire_format::binary16};

// ── records behind elements ──

/// What is known of a gradient, and travels behind elements.
using record = report::entry;

/// Counts the elements that are copied.
struct counting_space : serial_space {
  std::size_t* copied;
  friend bool operator==(const counting_space&, const counting_space&) = default;

  template <class T>
  void copy(const T* from, T* to, std::size_t count) const {
    *copied += count;
    serial_space::copy(from, to, count);
  }
};

/// Elements and records that have travelled in one message.
template <class T>
void check_sent(std::size_t length, std::size_t count) {
  CAPTURE(length);
  CAPTURE(count);
  std::vector<T> elements;
  for (std::size_t x = 0; x < length; ++x) elements.push_back(from_double<T>(static_cast<double>(x)));
  std::vector<record> records;
  for (std::size_t i = 0; i < count; ++i) records.push_back({1.0 / static_cast<double>(i + 3), -1.5});
  const std::vector<detail::transfer> messages{{1, {0, length}, {0, count}, false, true}};
  const auto room = detail::room_for_records(messages, 1, sizeof(T));
  CHECK(room * sizeof(T) >= count * sizeof(record));

  const auto elements_of_space = detail::ref_to_space<T>(space);
  detail::wire from(elements_of_space, wire_format::same, 0, 0, length + room);
  detail::wire to(elements_of_space, wire_format::same, 0, 0);
  std::vector<T> received(length + room);
  std::vector<record> known(count);
  to.reserve(1);
  for (int run = 0; run < 2; ++run) {
    from.begin();
    to.begin();
    const auto message = from.send(1, bytes_of(elements), length, records, false);
    const auto buffer = to.receive(4, bytes_of(received), length, known);
    CHECK(message.peer == 1);
    CHECK(buffer.peer == 4);
    REQUIRE(message.bytes.size() == length * sizeof(T) + count * sizeof(record));
    REQUIRE(buffer.bytes.size() == message.bytes.size());
    std::ranges::copy(message.bytes, buffer.bytes.begin());
    to.unpack();
    CHECK(std::equal(elements.begin(), elements.end(), received.begin()));
    for (std::size_t i = 0; i < count; ++i) {
      CHECK(known[i].norm == records[i].norm);
      CHECK(known[i].weight == records[i].weight);
    }
    elements.front() = from_double<T>(7);
    records.front().norm = 0.1;
  }
}

}  // namespace

TEST_CASE("elements as they are: sent from where they lie, received where they are wanted") {
  detail::wire wire(floats, wire_format::same, 0, 0);
  std::vector<float> elements{1, 2, 3};
  CHECK_FALSE(wire.rounds());
  const auto message = wire.send(4, bytes_of(elements), 3);
  const auto buffer = wire.receive(5, bytes_of(elements), 3);
  CHECK(message.peer == 4);
  CHECK(buffer.peer == 5);
  for (const auto where : {message.where, buffer.where}) CHECK(where == memory_kind::space);
  CHECK(message.bytes.data() == std::as_bytes(std::span(elements)).data());
  CHECK(buffer.bytes.data() == std::as_bytes(std::span(elements)).data());
  CHECK(buffer.bytes.size() == 12);
  wire.round(bytes_of(elements), 3);
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
      detail::wire wire(floats, format, packed, 0);
      auto kept = elements;
      wire.round(bytes_of(kept), kept.size());
      CHECK(same_bits(kept, sent(format, elements)));
    }
}

TEST_CASE("several messages of one exchange lie side by side, exchange after exchange") {
  detail::wire wire(floats, wire_format::binary16, 5, 5);
  wire.reserve(2);
  for (int exchange = 0; exchange < 3; ++exchange) {
    std::vector<float> first{1, 2}, second{3, 4, 5};
    std::vector<float> to_first(2), to_second(3);
    wire.begin();
    const auto a = wire.send(1, bytes_of(first), 2), b = wire.send(2, bytes_of(second), 3);
    const auto from_a = wire.receive(1, bytes_of(to_first), 2), from_b = wire.receive(2, bytes_of(to_second), 3);
    CHECK(a.bytes.size() == 4);
    CHECK(b.bytes.size() == 6);
    std::ranges::copy(b.bytes, from_b.bytes.begin());
    std::ranges::copy(a.bytes, from_a.bytes.begin());
    wire.unpack();
    CHECK(to_first == first);
    CHECK(to_second == second);
  }
}

TEST_CASE("elements that go to several ranks one after the other are packed once") {
  detail::wire wire(floats, wire_format::binary16, 6, 0);
  std::vector<float> elements{1e5f, 2, 1e-9f};
  const auto is_packed = [](const outgoing& message, std::vector<std::uint16_t> bits) {
    return std::ranges::equal(message.bytes, std::as_bytes(std::span(bits)));
  };
  wire.begin();
  const auto one = wire.send(1, bytes_of(elements), 3);
  CHECK(is_packed(one, {0x7c00, 0x4000, 0}));  // Inf, 2, 0
  // Would show if they were packed again.
  elements.front() = 1;
  const auto other = wire.send(2, bytes_of(elements), 3);
  CHECK(other.peer == 2);
  CHECK(other.bytes.data() == one.bytes.data());
  CHECK(is_packed(other, {0x7c00, 0x4000, 0}));
  const auto first = wire.send(3, bytes_of(elements), 1);  // other elements from the same address
  CHECK(first.bytes.data() == one.bytes.data() + one.bytes.size());
  CHECK(is_packed(first, {0x3c00}));
  wire.begin();  // elements may have changed since
  const auto later = wire.send(1, bytes_of(elements), 3);
  CHECK(later.bytes.data() == one.bytes.data());
  CHECK(is_packed(later, {0x3c00, 0x4000, 0}));
}

// ── records behind elements ──

TEST_CASE_TEMPLATE("elements and records arrive where they belong, to the last bit", T, ADASUM_TEST_FORMATS) {
  // Behind an odd number of narrow elements, records do not lie at an address for doubles.
  for (const std::size_t length : {1u, 3u, 64u})
    for (const std::size_t records : {1u, 5u}) check_sent<T>(length, records);
}

TEST_CASE("what several ranks get is copied once; parts of their own, one behind the other") {
  std::size_t copied = 0;
  const counting_space counting{{}, &copied};
  std::vector<float> elements{1, 2, 3, 4};
  const std::vector<record> records{{1, 2}};
  const std::byte* const all = bytes_of(elements);
  detail::wire messages(detail::ref_to_space<float>(counting), wire_format::same, 0, 0, 16);
  messages.begin();
  const auto one = messages.send(1, all, 4, records, false), other = messages.send(2, all, 4, records, false);
  CHECK(copied == 4);
  CHECK(one.bytes.data() == other.bytes.data());
  CHECK(other.peer == 2);
  const auto half = messages.send(3, all, 2, records, false);
  CHECK(copied == 6);
  CHECK(half.bytes.data() == one.bytes.data() + one.bytes.size());
  messages.begin();  // elements may have changed since
  CHECK(messages.send(1, all, 2, records, false).bytes.data() == one.bytes.data());
  CHECK(copied == 8);
}

TEST_CASE("a message that is withheld is not made, and is as long") {
  std::size_t copied = 0;
  const counting_space counting{{}, &copied};
  std::vector<float> elements{1, 2};
  const std::vector<record> records{{1, 2}, {3, 4}};
  detail::wire messages(detail::ref_to_space<float>(counting), wire_format::same, 0, 0, 10);
  messages.begin();
  CHECK(messages.send(1, bytes_of(elements), 2, records, true).bytes.size() == 2 * sizeof(float) + 2 * sizeof(record));
  CHECK(copied == 0);
}

TEST_CASE("room is for the longest records that are joined to elements, of all segments") {
  const std::vector<detail::transfer> messages{
      {1, {0, 9}, {0, 2}, false, true}, {2, {0, 9}, {2, 5}, false, true}, {3, {0, 9}, {5, 50}, false, false}};
  CHECK(detail::room_for_records(messages, 10, sizeof(float)) == 3 * 10 * 4);
  CHECK(detail::room_for_records(messages, 1, sizeof(double)) == 3 * 2);
  CHECK(detail::room_for_records({}, 10, sizeof(float)) == 0);
}

}  // namespace test_of_detail_engine_transport_messenger
