// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../../core/config.hpp"

namespace adasum::detail {

/// When a wait is limited by options::timeout.
enum class time_limit {
  always,
  once_all_have_begun,  ///< this run: until then, they may still compute their gradients
  never,                ///< others may be at work elsewhere, or compute the next piece of their gradients
};

}  // namespace adasum::detail
