// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <initializer_list>

namespace adasum::test {

/// for (const std::size_t n : sizes{1, 2, 3}): no integer is converted on the way.
using sizes = std::initializer_list<std::size_t>;

}  // namespace adasum::test
