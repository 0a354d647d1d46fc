// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect only: this call takes none
#include <adasum/combine.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/rules/mean.hpp>
#include <adasum/schedules/recursive_doubling.hpp>
#include <adasum/tree.hpp>

/// It is Adasum already.
void use(const std::vector<std::vector<float>>& gradients, std::vector<float>& out, const adasum::segments& segments) {
#ifdef CORRECTED
  adasum::adasum_tree(adasum::serial_space{}, gradients, out, segments);
#else
  adasum::adasum_tree(adasum::serial_space{}, gradients, out, segments, adasum::rules::mean{});
#endif
}
