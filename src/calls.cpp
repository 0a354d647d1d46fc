// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/compiled.hpp>

namespace adasum {
ADASUM_COMPILED_CALLS()
}  // namespace adasum
