// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

namespace adasum::test {

/// How often the calling thread has called operator new. Programs that use it are linked with allocations.cpp.
std::size_t allocations();

}  // namespace adasum::test
