// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <cstdlib>
#include <string_view>

namespace adasum::detail {

/// What an environment variable says; empty if there is none.
inline std::string_view environment(const char* variable) {
  const char* const text = std::getenv(variable);  // NOLINT(*-mt-unsafe): nothing here sets variables
  return text ? text : "";
}

}  // namespace adasum::detail
