// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <adasum/core/waiting.hpp>

namespace test_of_core_spinning {

using adasum::detail::spinning;

namespace {

/// Waits for what comes after so many looks. @return how often the processor was offered meanwhile
unsigned wait(spinning& spin, unsigned looks) {
  unsigned offers = 0;
  for (unsigned i = 0; i < looks; ++i)
    if (!spin.again()) ++offers;
  spin.ended();
  return offers;
}

}  // namespace

TEST_CASE("who waits looks for as long as that was enough before") {
  spinning spin(20000);
  CHECK(wait(spin, 19999) == 0);
  CHECK(wait(spin, 20001) == 2);  // in vain
  CHECK(spin.limit() == 5000);
  CHECK(wait(spin, 4000) == 0);
  CHECK(spin.limit() == 10000);
  CHECK(wait(spin, 1) == 0);
  CHECK(wait(spin, 1) == 0);
  CHECK(spin.limit() == 20000);  // not longer
}

TEST_CASE("who mostly looks in vain offers the processor soon") {
  spinning spin(20000);
  for (int i = 0; i < 10; ++i) wait(spin, 100000);
  CHECK(spin.limit() == spinning::least);
  CHECK(wait(spin, 1000) == 1000 - spinning::least + 1);
  // One wait in three that is short does not make it look long again.
  for (int i = 0; i < 100; ++i) wait(spin, i % 3 == 0 ? 10 : 100000);
  CHECK(spin.limit() <= 2 * spinning::least);
}

TEST_CASE("what has come at once says nothing") {
  spinning spin(20000);
  wait(spin, 100000);
  const auto limit = spin.limit();
  for (int i = 0; i < 10; ++i) wait(spin, 0);
  CHECK(spin.limit() == limit);
}

}  // namespace test_of_core_spinning
