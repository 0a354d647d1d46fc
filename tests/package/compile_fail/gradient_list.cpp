// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect only: write a range of gradients
#include <adasum/combine.hpp>
#include <adasum/exec/serial.hpp>

#ifdef CORRECTED
using gradients = std::vector<std::vector<float>>;
#else
using gradients = std::vector<float>;
#endif

void use(gradients& all, std::vector<float>& out) { adasum::combine(adasum::serial_space{}, all, out); }
