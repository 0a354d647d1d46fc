// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <cstddef>
#include <vector>

namespace adasum {

/// Which part of a gradient a rank has, if each gradient is split over several ranks: sharded parameters (FSDP, ZeRO),
/// tensor, expert and pipeline parallelism, domain decomposition. The ranks of one communicator are then
///
///     replicas × shards:   rank (r, s) has shard s of the gradient of replica r
///
/// and each rank combines its shard with the same shards of the other replicas, with weights that all shards of a replica
/// share, because inner products are added over the shards too. So the result consists of the shards of what the rule makes
/// of the whole gradients.
///
///     adasum::adasum_allreduce(exec, comm, mine, segments, adasum::shard{.replica = rank / 4, .index = rank % 4});
///
/// The ranks may be numbered in any order: they tell each other what they have when a plan is made. All replicas are cut in
/// the same way, into one or more shards. Shards may differ in length, and may be empty. Segment k of each shard is the
/// shard's part of one and the same segment of the whole gradient, so all ranks have the same number of segments, of
/// which any may be empty.
struct shard {
  int replica = 0;  ///< whose gradient: from 0 to the number of replicas - 1
  int index = 0;    ///< which part of it: from 0 to the number of shards - 1
  /// The segments that every shard of a replica holds completely, with equal numbers in them, such as the parameters of a
  /// layer norm under tensor parallelism. They count once in inner products. In ascending order, and the same on all ranks.
  std::vector<std::size_t> replicated{};

  friend bool operator==(const shard&, const shard&) = default;
};

}  // namespace adasum
