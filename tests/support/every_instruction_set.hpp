// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <vector>

#include <adasum/exec/serial/instruction_set.hpp>

namespace adasum::test {

/// The instruction sets that this processor has.
inline std::vector<instruction_set> every_instruction_set() {
  std::vector<instruction_set> sets;
  for (const auto set : {instruction_set::baseline, instruction_set::avx2, instruction_set::avx512})
    if (set <= best_instruction_set()) sets.push_back(set);
  return sets;
}

/// Bytes of the vectors that kernels use.
constexpr std::size_t vector_bytes(instruction_set set) {
  return set == instruction_set::avx512 ? 64 : set == instruction_set::avx2 ? 32 : 16;
}

/// Runs a kernel with the given instruction set. @pre the processor has it
template <class Kernel, class... Arguments>
void run(instruction_set set, Arguments... arguments) {
#if defined(__x86_64__)
  if (set == instruction_set::avx512) return detail::serial::enter_avx512<Kernel>(arguments...);
  if (set == instruction_set::avx2) return detail::serial::enter_avx2<Kernel>(arguments...);
#endif
  (void)set;
  detail::serial::enter_baseline<Kernel>(arguments...);
}

}  // namespace adasum::test
