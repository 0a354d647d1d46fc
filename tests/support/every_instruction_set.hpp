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

}  // namespace adasum::test
