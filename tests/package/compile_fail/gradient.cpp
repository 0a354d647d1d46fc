// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect only: write a contiguous array
#include <adasum/pair.hpp>
#include <adasum/spaces/serial.hpp>

#include <deque>

#ifdef CORRECTED
using array = std::vector<float>;
#else
using array = std::deque<float>;  // not contiguous
#endif

void use(array& a, array& b) { adasum::adasum_pair(adasum::serial_space{}, a, b, a); }
