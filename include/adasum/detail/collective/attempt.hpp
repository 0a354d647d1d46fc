// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <new>

#include "../references/function_ref.hpp"

namespace adasum::detail {

/// Makes an exchange. A communicator that throws std::bad_alloc has exchanged nothing (core/concepts.hpp), so it is asked
/// once more: the others wait for these messages, and what was short a moment ago may be there now.
inline void attempt(function_ref<void()> exchange) {
  try {
    exchange();
  } catch (const std::bad_alloc&) {
    exchange();
  }
}

}  // namespace adasum::detail
