// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect only: adasum: the options are given twice
#include <adasum/combine.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/rules/mean.hpp>
#include <adasum/schedules/recursive_doubling.hpp>
#include <adasum/tree.hpp>

/// Which of them?
void use(const std::vector<std::vector<float>>& gradients, std::vector<float>& out,
         [[maybe_unused]] const adasum::segments& segments) {
#ifdef CORRECTED
  adasum::combine(adasum::serial_space{}, gradients, out, adasum::options{});
#else
  adasum::combine(adasum::serial_space{}, gradients, out, adasum::options{}, adasum::options{});
#endif
}
