// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/core/error.hpp>

#include <doctest/doctest.h>

#include <exception>
#include <new>
#include <stdexcept>
#include <string>

namespace test_of_core_deferred_error {

using adasum::detail::deferred_error;
using adasum::detail::exception_from;

namespace {

std::string text_of(const std::exception_ptr& problem) {
  if (!problem) return "none";
  try {
    std::rethrow_exception(problem);
  } catch (const std::exception& found) {
    return found.what();
  }
}

[[noreturn]] void fail(const char* text) { throw std::runtime_error(text); }

}  // namespace

TEST_CASE("an exception from what makes it, or the one that kept it from being made") {
  CHECK(text_of(exception_from([] { return std::runtime_error("made"); })) == "made");
  const auto none = exception_from([]() -> std::runtime_error { throw std::bad_alloc(); });
  CHECK_THROWS_AS(std::rethrow_exception(none), std::bad_alloc);
}

TEST_CASE("steps run until one fails, and those that others depend on run even then; the first exception is kept") {
  deferred_error problem;
  std::string ran;
  CHECK_FALSE(problem.failed());
  CHECK_NOTHROW(problem.rethrow());
  problem([&] { ran += 'a'; });
  problem.even_after_failure([&] { ran += 'b'; });
  CHECK_FALSE(problem.failed());
  problem([&] {
    ran += 'c';
    fail("first");
  });
  CHECK(problem.failed());
  problem([&] { ran += 'd'; });
  problem.even_after_failure([&] {
    ran += 'e';
    fail("second");
  });
  problem.even_after_failure([&] { ran += 'f'; });
  CHECK(ran == "abcef");
  CHECK_THROWS_WITH_AS(problem.rethrow(), "first", std::runtime_error);
}

}  // namespace test_of_core_deferred_error
