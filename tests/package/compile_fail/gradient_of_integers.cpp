// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect only: write float or double elements
#include <adasum/exec/serial.hpp>
#include <adasum/pair.hpp>

#ifdef CORRECTED
using array = std::vector<float>;
#else
using array = std::vector<int>;
#endif

void use(array& a) { adasum::adasum_pair(adasum::serial_space{}, a, a, a); }
