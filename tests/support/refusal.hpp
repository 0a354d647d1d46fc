// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <doctest/doctest.h>

#include <string>

#include <adasum/core/error.hpp>

namespace adasum::test {

/// A checker must find a planted fault, and say which: all that is mentioned.
template <class Check, class... Mentions>
void check_refused(const Check& check, const Mentions&... mentions) {
  std::string message = "(it found nothing)";
  try {
    check();
  } catch (const bad_input& error) {
    message = error.what();
  }
  CAPTURE(message);
  for (const std::string& mention : {std::string(mentions)...}) {
    CAPTURE(mention);
    CHECK(message.find(mention) != std::string::npos);
  }
}

}  // namespace adasum::test
