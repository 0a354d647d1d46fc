// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <limits>
#include <string_view>
#include <vector>

#include "../core/stage.hpp"
#include "cost.hpp"
#include "direct.hpp"
#include "gram.hpp"
#include "recursive_doubling.hpp"
#include "recursive_halving.hpp"
#include "splitting.hpp"

namespace adasum::schedules {

/// Chooses by size and number of ranks. This is the one place where the choice is made.
struct automatic {
  static constexpr std::string_view name = "automatic";
  static constexpr bool all_at_once = true;

  /// Whether a plan reduces gradients of the caller's in memory that the ranks share, where all of them do; the same on
  /// all ranks. They are copied there and back, which is still less work than messages, whose bytes are copied too. (In
  /// plan.buffer() a plan works in place anyway.) Making that memory takes longer than one reduction, so
  /// adasum_allreduce sends messages.
  bool in_place = true;

  /// Whether that pays: in place, a rank measures its slice of all gradients, which grows with the ranks as P·N, and
  /// reads all their Gram matrices, which must not be more than the gradients.
  static constexpr int most_ranks_in_place = 16;
  static bool pays_in_place(int size, const problem& what) {
    if (size < 2 || size > most_ranks_in_place) return false;
    if (direct::is_short(size, what)) return true;
    const auto ranks = static_cast<std::size_t>(size);
    return what.segments * packed_size(ranks) * sizeof(double) * ranks <= what.length * what.element_size;
  }

  /// Up to so many bytes, whole vectors are exchanged. Two ranks go by what was measured on one node (bench/allreduce):
  /// then the exchanges that halving needs for its sums and for gathering cost more than the bytes that it saves. Among
  /// more ranks, whatever the model says: it goes by the number of segments too, and schedules are so near each other
  /// there that a rank whose segments are wrong would often take another one than the others.
  static constexpr std::size_t short_vector_bytes(int size) { return (size <= 2 ? 8 : 1) * 1024; }
  /// What more than two ranks choose from, besides doubling and halving.
  static constexpr std::size_t widest_radix = 32;
  static constexpr int most_ranks_at_once = 256;  ///< the Gram matrix of more is a message of megabytes

  enum class kind { doubling, halving, splitting, gram };
  struct choice {
    kind which;
    std::size_t radix = 2;  ///< of splitting
    friend constexpr bool operator==(const choice&, const choice&) = default;
  };

  static choice choose(int size, const problem& what) {
    if (!what.along_tree) return {kind::gram};
    if (size == 1) return {kind::doubling};
    if (what.length * what.element_size <= short_vector_bytes(size)) return {kind::doubling};
    return size == 2 ? choice{kind::halving} : cheapest(size, what);
  }

  /// By the model of cost.hpp: the least seconds() of rank 0, which is among the busiest (where ranks are folded, it
  /// first waits for another's gradient). Every rank computes the same. The machine is the one of docs/scale.md.
  static choice cheapest(int size, const problem& what, const machine& on = {}) {
    choice best{kind::doubling};
    double least = std::numeric_limits<double>::infinity();
    const auto consider = [&](choice one) {
      const double time = seconds(cost_counter(stages_of(one, 0, size, what), 0, size, what).total(), on);
      if (time < least) least = time, best = one;
    };
    consider({kind::doubling});
    consider({kind::halving});
    for (std::size_t radix = 4; radix <= widest_radix && radix <= static_cast<std::size_t>(size); radix *= 2)
      consider({kind::splitting, radix});
    if (size <= most_ranks_at_once) consider({kind::gram});
    return best;
  }

  static std::vector<stage> stages_of(choice one, int rank, int size, const problem& what) {
    switch (one.which) {
      case kind::gram: return gram{}.stages(rank, size, what);
      case kind::splitting: return splitting{one.radix}.stages(rank, size, what);
      case kind::halving: return recursive_halving{}.stages(rank, size, what);
      case kind::doubling: break;
    }
    return recursive_doubling{}.stages(rank, size, what);
  }

  std::vector<stage> stages(int rank, int size, const problem& what) const {
    return stages_of(choose(size, what), rank, size, what);
  }

  /// Where all ranks share memory: schedules::direct.
  std::vector<stage> stages_in_place(int rank, int size, const problem& what) const {
    return direct{}.stages(rank, size, what);
  }

  /// The schedule that runs.
  static std::string_view chosen_name(int size, const problem& what) {
    switch (choose(size, what).which) {
      case kind::gram: return gram::name;
      case kind::splitting: return splitting::name;
      case kind::halving: return recursive_halving::name;
      case kind::doubling: break;
    }
    return recursive_doubling::name;
  }
};

}  // namespace adasum::schedules
