// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect only: write one flat array, with adasum::segments
#include <adasum/exec/serial.hpp>
#include <adasum/pair.hpp>

#ifdef CORRECTED
using gradient = std::vector<float>;
#else
using gradient = std::vector<std::vector<float> >;  // one for each layer
#endif

void use(gradient& a) { adasum::adasum_pair(adasum::serial_space{}, a, a, a); }
