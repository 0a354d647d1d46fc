// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect only: write gradients and an output of one element type
#include <adasum/exec/serial.hpp>
#include <adasum/pair.hpp>

#ifdef CORRECTED
using array = std::vector<float>;
#else
using array = std::vector<double>;
#endif

void use(std::vector<float>& a, array& b) { adasum::adasum_pair(adasum::serial_space{}, a, b, a); }
