// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect only: write a contiguous array
#include <adasum/exec/serial.hpp>
#include <adasum/pair.hpp>

#include <deque>

#ifdef CORRECTED
using array = std::vector<float>;
#else
using array = std::deque<float>;  // not contiguous
#endif

void use(array& a, array& b) { adasum::adasum_pair(adasum::serial_space{}, a, b, a); }
