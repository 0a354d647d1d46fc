// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect only: write the call without enqueue_
#include <adasum/exec/serial.hpp>
#include <adasum/pair.hpp>

/// The serial space has no stream.
void use(std::vector<float>& a, std::vector<float>& b) {
#ifdef CORRECTED
  adasum::adasum_pair(adasum::serial_space{}, a, b, a);
#else
  adasum::enqueue_adasum_pair(adasum::serial_space{}, a, b, a);
#endif
}
