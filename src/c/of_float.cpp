// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "of_type.hpp"

namespace adasum::c {

const calls_of_type& calls_of_float() {
  static constinit const calls_of_elements<float> calls("float");
  return calls;
}

}  // namespace adasum::c
