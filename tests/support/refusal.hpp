// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <doctest/doctest.h>

#include <string>

#include <adasum/core/error.hpp>

namespace adasum::test {

/// A checker must find a planted fault, and say which.
template <class Check>
void check_refused(const Check& check, const std::string& mentions) {
  CHECK_THROWS_WITH_AS(check(), doctest::Contains(mentions.c_str()), bad_input);
}

}  // namespace adasum::test
