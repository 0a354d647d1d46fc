// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include "../core/stage.hpp"

namespace adasum::schedules {

/// Without messages: ranks that share memory measure and mix slices of each other's gradients in place.
///
/// Up to `radix` ranks do so in one stage, as all_to_all: it takes three barriers and no scratch memory, and each rank reads
/// or writes about 3N elements of the others. More ranks walk up the tree level by level, as recursive_halving{radix}, with
/// as many ranks at a level as the radix allows (64 = 8 · 8; 96 = 8 · 4 · 3): that takes three barriers for each level
/// (of the ranks that meet and of those whose inner products are summed), as many bytes, less arithmetic, and Gram
/// matrices of the level's ranks only. The results have the same bits as those of recursive_halving with the same
/// levels. Nobody is folded: a prime factor of the number of ranks is a level, however large. A rule that is not
/// applied along the tree takes one stage of all ranks.
///
/// Short gradients are copied to where all ranks read them, and each rank computes the whole result: one barrier.
///
/// For all ranks of one process (thread_communicator), or of one node with gradients in plan.buffer()
/// (mpi_communicator). Of a gradient that lies elsewhere, what other ranks combine is copied into the plan's buffer and
/// back; by levels, all of it. The other ranks notice when a rank fails or leaves. Until all ranks have begun a run they
/// wait as long as it takes, since some may still be computing their gradients; after that for at most options.timeout.
struct shared_memory {
  static constexpr std::string_view name = "shared_memory";
  static constexpr bool supports_gram_rules = true;

  /// The most ranks that meet at a level, at least 2; a prime factor that is larger is a level all the same.
  std::size_t radix = 8;
  friend constexpr bool operator==(const shared_memory&, const shared_memory&) = default;

  /// Where all ranks' gradients together have at most this many bytes, each rank combines them whole: that costs less than
  /// two more barriers.
  static constexpr std::size_t short_bytes = std::size_t{8} << 10;

  /// Whether the gradients are that short: the same for all pieces of a gradient, and on all ranks that hold its shards.
  static constexpr bool is_short(int size, const schedule_input& input) {
    return !input.on_device &&
           input.of_whole().length * input.element_size * static_cast<std::size_t>(size) <= short_bytes;
  }

  static constexpr shared_memory_use uses_shared_memory(int, const schedule_input&) {
    return shared_memory_use::required;
  }

  /// @throws bad_input if the radix is less than 2
  std::vector<stage> stages(int rank, int size, const schedule_input& input) const;

  /// See the concept schedule: stages of short gradients do not tell radices apart.
  std::array<double, 1> parameters() const { return {static_cast<double>(radix)}; }
};

}  // namespace adasum::schedules

#if ADASUM_DEFINITIONS
#include "levels.hpp"

namespace adasum::schedules {

ADASUM_INLINE std::vector<stage> shared_memory::stages(int rank, int size, const schedule_input& input) const {
  detail::require_radix(radix, "shared_memory");
  const bool all_at_once = is_short(size, input) || !input.along_tree;
  auto all =
      detail::stages_by_levels(rank, size, input.length, all_at_once ? detail::one_level : radix,
                               is_short(size, input) ? 1 : detail::any_number_of_parts, detail::large_primes::kept);
  if (is_short(size, input)) all.front().published = true;
  return all;
}

}  // namespace adasum::schedules
#endif
