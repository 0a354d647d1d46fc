// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels.hpp"

#include "../../src/serial_kernels.cpp"

namespace adasum {
ADASUM_TEST_REDUCTIONS()
}
