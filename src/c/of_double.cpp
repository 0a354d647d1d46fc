// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "of_type.hpp"

namespace adasum::c {

const calls_of_type& calls_of_double() {
  static constinit const calls_of_elements<double> calls("double");
  return calls;
}

}  // namespace adasum::c
