// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/core/message.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <span>

namespace test_of_core_message {

using adasum::incoming;
using adasum::memory_kind;
using adasum::outgoing;

TEST_CASE("a message of a peer and bytes alone is in memory of the host, and is sent and received") {
  std::array<double, 3> numbers{};
  const outgoing out{2, std::as_bytes(std::span(numbers))};
  const incoming in{1, std::as_writable_bytes(std::span(numbers))};
  CHECK(out.bytes.size() == 24);
  CHECK(out.where == memory_kind::host);
  CHECK_FALSE(out.withheld);
  CHECK(in.where == memory_kind::host);
  CHECK_FALSE(in.discarded);
  in.bytes.front() = std::byte{7};  // a buffer is written; what is sent is seen through
  CHECK(out.bytes.front() == std::byte{7});
}

}  // namespace test_of_core_message
