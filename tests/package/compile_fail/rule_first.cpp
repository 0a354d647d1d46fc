// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect only: write the rule after the gradients
#include <adasum/combine.hpp>
#include <adasum/exec/serial.hpp>

void use(std::vector<std::vector<float>>& gradients, std::vector<float>& out) {
#ifdef CORRECTED
  adasum::combine(adasum::serial_space{}, gradients, out, adasum::rules::adasum{});
#else
  adasum::combine(adasum::serial_space{}, adasum::rules::adasum{}, gradients, out);
#endif
}
