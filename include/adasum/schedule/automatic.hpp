// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <cstddef>
#include <limits>
#include <string_view>
#include <vector>

#include "../core/stage.hpp"
#include "all_to_all.hpp"
#include "cost.hpp"
#include "recursive_doubling.hpp"
#include "recursive_halving.hpp"
#include "shared_memory.hpp"

namespace adasum::schedules {

/// Chooses a schedule by the gradient's length and the number of ranks. This is the only place where a choice is made.
struct automatic {
  static constexpr std::string_view name = "automatic";
  static constexpr bool supports_gram_rules = true;

  /// Whether a plan may reduce gradients of the caller's in memory that the ranks share, copying them there and back.
  bool in_place = true;

  /// In place, the work of measuring grows with the number of ranks as P·N, and every rank reads all Gram matrices. So
  /// there is a limit to the number of ranks, and the Gram matrices must not be larger than the gradients.
  static constexpr int most_ranks_in_place = 16;
  static bool pays_in_place(int size, const schedule_input& input) {
    if (size < 2 || size > most_ranks_in_place) return false;
    if (shared_memory::is_short(size, input)) return true;
    const auto ranks = static_cast<std::size_t>(size);
    return input.segments * packed_size(ranks) * sizeof(double) * ranks <= input.length * input.element_size;
  }

  /// Copying a gradient to shared memory and back is less work than messages, whose bytes are copied too. But making
  /// that memory takes longer than one reduction, so a single call sends messages. In plan.buffer() nothing is copied.
  shared_memory_use uses_shared_memory(int size, const schedule_input& input) const {
    return in_place && !input.once && pays_in_place(size, input) ? shared_memory_use::preferred
                                                                 : shared_memory_use::buffer_if_all;
  }

  /// Gradients of at most this many bytes are exchanged whole. The limit for two ranks was measured on one node
  /// (bench/allreduce): below it, the exchanges that halving needs for its sums and for gathering cost more than the bytes
  /// that it saves. For more ranks the model is not asked: its answer depends on the number of segments, and schedules of
  /// short gradients cost so nearly the same that a rank whose segments are wrong would often choose another schedule
  /// than the other ranks.
  static constexpr std::size_t short_vector_bytes(int size) { return (size <= 2 ? 8 : 1) * 1024; }
  /// What more than two ranks choose from, besides doubling.
  static constexpr std::size_t widest_radix = 32;
  static constexpr int most_ranks_all_to_all = 256;  ///< the Gram matrix of more is a message of megabytes

  enum class kind { doubling, halving, all_to_all, shared_memory };
  struct choice {
    kind which;
    std::size_t radix = 2;  ///< of halving
    friend constexpr bool operator==(const choice&, const choice&) = default;
  };

  static choice choose(int size, const schedule_input& input) {
    if (input.in_place) return {kind::shared_memory};
    if (!input.along_tree) return {kind::all_to_all};
    if (size == 1) return {kind::doubling};
    if (input.length * input.element_size <= short_vector_bytes(size)) return {kind::doubling};
    return size == 2 ? choice{kind::halving} : cheapest(size, input);
  }

  /// The schedule with the least seconds() by the model of cost.hpp, on the machine of docs/scale.md. Every rank computes
  /// it for rank 0, which is among the busiest: where ranks are folded, it first waits for another one's gradient.
  static choice cheapest(int size, const schedule_input& input, const machine& on = {}) {
    choice best{kind::doubling};
    double least = std::numeric_limits<double>::infinity();
    const auto consider = [&](choice one) {
      const double time = seconds(cost_counter(stages_of(one, 0, size, input), 0, size, input).total(), on);
      if (time < least) least = time, best = one;
    };
    consider({kind::doubling});
    consider({kind::halving});
    for (std::size_t radix = 4; radix <= widest_radix && radix <= static_cast<std::size_t>(size); radix *= 2)
      consider({kind::halving, radix});
    if (size <= most_ranks_all_to_all) consider({kind::all_to_all});
    return best;
  }

  static std::vector<stage> stages_of(choice one, int rank, int size, const schedule_input& input) {
    switch (one.which) {
      case kind::shared_memory: return shared_memory{}.stages(rank, size, input);
      case kind::all_to_all: return all_to_all{}.stages(rank, size, input);
      case kind::halving: return recursive_halving{one.radix}.stages(rank, size, input);
      case kind::doubling: break;
    }
    return recursive_doubling{}.stages(rank, size, input);
  }

  std::vector<stage> stages(int rank, int size, const schedule_input& input) const {
    return stages_of(choose(size, input), rank, size, input);
  }

  /// The schedule that runs.
  static std::string_view chosen_name(int size, const schedule_input& input) {
    switch (choose(size, input).which) {
      case kind::shared_memory: return shared_memory::name;
      case kind::all_to_all: return all_to_all::name;
      case kind::halving: return recursive_halving::name;
      case kind::doubling: break;
    }
    return recursive_doubling::name;
  }
};

}  // namespace adasum::schedules
