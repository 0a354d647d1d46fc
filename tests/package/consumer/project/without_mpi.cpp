// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/adasum.hpp>

#include "expected.hpp"

int main() {
  const std::vector<float> a{4, 5, 6, 7}, b{8, 9, 10, 11};
  std::vector<float> out(4);
  adasum::adasum_pair(adasum::serial_space{}, a, b, out);
  return is_expected(out) ? 0 : 1;
}
