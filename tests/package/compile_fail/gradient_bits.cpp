// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect only: write std::vector<float>
#include <adasum/exec/serial.hpp>
#include <adasum/pair.hpp>

#ifdef CORRECTED
using array = std::vector<float>;
#else
using array = std::vector<bool>;
#endif

void use(array& a) { adasum::adasum_pair(adasum::serial_space{}, a, a, a); }
