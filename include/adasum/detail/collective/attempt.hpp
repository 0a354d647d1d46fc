// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <new>

namespace adasum::detail {

/// Makes an exchange. A communicator that throws std::bad_alloc has exchanged nothing (core/concepts.hpp), so it is asked
/// once more: the others wait for these messages, and what was short a moment ago may be there now.
template <class Exchange>
void attempt(Exchange&& exchange) {
  try {
    exchange();
  } catch (const std::bad_alloc&) {
    exchange();
  }
}

}  // namespace adasum::detail
