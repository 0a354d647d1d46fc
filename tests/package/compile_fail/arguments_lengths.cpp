// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect only: write adasum::segments.lengths.
#include <adasum/combine.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/rules/mean.hpp>
#include <adasum/schedules/recursive_doubling.hpp>
#include <adasum/tree.hpp>

/// Lengths of segments, which nothing says.
void use(const std::vector<std::vector<float>>& gradients, std::vector<float>& out,
         [[maybe_unused]] const adasum::segments& segments) {
#ifdef CORRECTED
  adasum::combine(adasum::serial_space{}, gradients, out, adasum::segments(std::vector{1, 2}));
#else
  adasum::combine(adasum::serial_space{}, gradients, out, std::vector{1, 2});
#endif
}
