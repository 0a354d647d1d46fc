// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/core/error.hpp>

#include <doctest/doctest.h>

#include <new>
#include <stdexcept>


namespace test_of_core_ended_exchange {

TEST_CASE("an exchange that has ended reports its own error, or one that was made in time") {
  const adasum::detail::ended_exchange ended;
  bool asked = false;
  CHECK_NOTHROW(ended.report([&] { asked = true; }));
  CHECK(asked);
  CHECK_THROWS_WITH_AS(ended.report([] { throw std::runtime_error("its own"); }), "its own", std::runtime_error);
  // std::bad_alloc would say that the exchange has not begun.
  CHECK_THROWS_WITH_AS(ended.report([] { throw std::bad_alloc(); }),
                       "adasum: an exchange has failed, and there is no memory to say why",
                       adasum::communication_error);
}

}  // namespace test_of_core_ended_exchange
