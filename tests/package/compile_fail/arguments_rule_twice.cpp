// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect only: adasum: a rule is given twice
#include <adasum/combine.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/rules/mean.hpp>
#include <adasum/schedules/recursive_doubling.hpp>
#include <adasum/tree.hpp>

/// Which of them?
void use(const std::vector<std::vector<float>>& gradients, std::vector<float>& out, const adasum::segments& segments) {
#ifdef CORRECTED
  adasum::combine(adasum::serial_space{}, gradients, out, segments, adasum::rules::mean{});
#else
  adasum::combine(adasum::serial_space{}, gradients, out, adasum::rules::adasum{}, segments, adasum::rules::mean{});
#endif
}
