// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/detail/collective/transport/messenger.hpp>
#include <adasum/exec/serial.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "support/doctest_scalars.hpp"
#include "support/driven_transport.hpp"
#include "support/scalars.hpp"

namespace test_of_detail_collective_transport_joined {

using namespace adasum;
using test::bytes_of;

namespace {

using record = report::entry;

/// Counts the elements that are copied.
struct counting_space : serial_space {
  std::size_t* copied;

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
  const serial_space space;
  std::vector<T> elements;
  for (std::size_t x = 0; x < length; ++x) elements.push_back(test::from_double<T>(static_cast<double>(x)));
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
    elements.front() = test::from_double<T>(7);
    records.front().norm = 0.1;
  }
}

}  // namespace

TEST_CASE_TEMPLATE("elements and records arrive where they belong, to the last bit", T, ADASUM_TEST_FORMATS) {
  // Behind an odd number of narrow elements, records do not lie at an address for doubles.
  for (const std::size_t length : {1u, 3u, 64u})
    for (const std::size_t records : {1u, 5u}) check_sent<T>(length, records);
}

TEST_CASE("what several ranks get is copied once; parts of their own, one behind the other") {
  std::size_t copied = 0;
  const counting_space space{{}, &copied};
  std::vector<float> elements{1, 2, 3, 4};
  const std::vector<record> records{{1, 2}};
  const std::byte* const all = bytes_of(elements);
  detail::wire messages(detail::ref_to_space<float>(space), wire_format::same, 0, 0, 16);
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
  const counting_space space{{}, &copied};
  std::vector<float> elements{1, 2};
  const std::vector<record> records{{1, 2}, {3, 4}};
  detail::wire messages(detail::ref_to_space<float>(space), wire_format::same, 0, 0, 10);
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

}  // namespace test_of_detail_collective_transport_joined
