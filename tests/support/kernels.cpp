// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels.hpp"

namespace adasum::detail::serial {
ADASUM_TEST_KERNELS()
}
