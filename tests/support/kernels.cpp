// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels.hpp"

namespace adasum::serial {
ADASUM_TEST_KERNELS()
}
