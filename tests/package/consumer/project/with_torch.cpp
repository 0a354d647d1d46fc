// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/exec/serial.hpp>
#include <adasum/pair.hpp>
#include <adasum/torch_tensor.hpp>

#include "expected.hpp"

int main() {
  const auto a = at::arange(4, 8, at::kFloat), b = at::arange(8, 12, at::kFloat);
  std::vector<float> out(4);
  adasum::adasum_pair(adasum::serial_space{}, adasum::elements<float>(a), adasum::elements<float>(b), out);
  return is_expected(out) ? 0 : 1;
}
