// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "../core/stage.hpp"
#include "gram.hpp"
#include "recursive_doubling.hpp"
#include "recursive_halving.hpp"

namespace adasum::schedules {

/// Chooses by size and number of ranks. This is the one place where the choice is made.
struct automatic {
  static constexpr std::string_view name = "automatic";
  static constexpr bool all_at_once = true;

  /// Up to so many bytes, whole vectors are exchanged: then the exchanges that halving needs for its sums and for
  /// gathering cost more than the bytes that it saves. Measured in bench/allreduce.
  static constexpr std::size_t short_vector_bytes(int size) { return (size <= 2 ? 8 : 16) * 1024; }

  enum class choice { doubling, halving, gram };

  static constexpr choice choose(int size, const problem& what) {
    if (!what.along_tree) return choice::gram;
    if (size == 1 || what.length * what.element_size <= short_vector_bytes(size)) return choice::doubling;
    return choice::halving;
  }

  std::vector<stage> stages(int rank, int size, const problem& what) const {
    switch (choose(size, what)) {
      case choice::gram: return gram{}.stages(rank, size, what);
      case choice::halving: return recursive_halving{}.stages(rank, size, what);
      case choice::doubling: break;
    }
    return recursive_doubling{}.stages(rank, size, what);
  }

  /// In the plan's own buffer, where all ranks share memory: schedules::direct.
  std::vector<stage> stages_in_place(int rank, int size, const problem& what) const {
    return gram{}.stages(rank, size, what);
  }

  /// The schedule that runs.
  static constexpr std::string_view chosen_name(int size, const problem& what) {
    switch (choose(size, what)) {
      case choice::gram: return gram::name;
      case choice::halving: return recursive_halving::name;
      case choice::doubling: break;
    }
    return recursive_doubling::name;
  }
};

}  // namespace adasum::schedules
