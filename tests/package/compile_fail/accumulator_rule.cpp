// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect only: an accumulator needs a rule for two gradients; this one looks at all of them at once
#include <adasum/accumulator.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/rules/multi_krum.hpp>

/// An accumulator has only two vectors at a time.
void use(const adasum::segments& segments) {
#ifdef CORRECTED
  adasum::plan_accumulator<float>(adasum::serial_space{}, segments);
#else
  adasum::plan_accumulator<float>(adasum::serial_space{}, segments, adasum::rules::multi_krum{});
#endif
}
