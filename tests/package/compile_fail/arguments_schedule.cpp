// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect only: this call takes no schedule
#include <adasum/combine.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/rules/mean.hpp>
#include <adasum/schedules/recursive_doubling.hpp>
#include <adasum/tree.hpp>

/// There are no messages.
void use(const std::vector<std::vector<float>>& gradients, std::vector<float>& out, const adasum::segments& segments) {
#ifdef CORRECTED
  (void)segments;
  adasum::combine(adasum::serial_space{}, gradients, out);
#else
  (void)segments;
  adasum::combine(adasum::serial_space{}, gradients, out, adasum::schedules::recursive_doubling{});
#endif
}
