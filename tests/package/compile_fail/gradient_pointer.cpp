// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect only: write std::span.pointer, length.
#include <adasum/exec/serial.hpp>
#include <adasum/pair.hpp>

void use(float* a, std::size_t length) {
#ifdef CORRECTED
  const std::span gradient(a, length);
#else
  (void)length;
  float* const gradient = a;
#endif
  adasum::adasum_pair(adasum::serial_space{}, gradient, gradient, gradient);
}
