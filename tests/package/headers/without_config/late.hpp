// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// check_refusal.cmake must object to this header: what it uses comes before what says that it needs C++20.
#pragma once

#include <concepts>

template <std::integral T>
T twice(T value) {
  return 2 * value;
}
