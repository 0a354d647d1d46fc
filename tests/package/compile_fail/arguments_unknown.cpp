// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect only: neither segments, a rule, a schedule nor options
#include <adasum/combine.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/rules/mean.hpp>
#include <adasum/schedules/recursive_doubling.hpp>
#include <adasum/tree.hpp>

/// What would a number be?
void use(const std::vector<std::vector<float>>& gradients, std::vector<float>& out, const adasum::segments& segments) {
#ifdef CORRECTED
  adasum::combine(adasum::serial_space{}, gradients, out, segments);
#else
  adasum::combine(adasum::serial_space{}, gradients, out, segments, 0.5);
#endif
}
