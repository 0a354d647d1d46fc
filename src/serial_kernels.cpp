// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/exec/serial/compiled.hpp>

namespace adasum::detail::serial {
ADASUM_COMPILED_KERNELS()
}  // namespace adasum::detail::serial
