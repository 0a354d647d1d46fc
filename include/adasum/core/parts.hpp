// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <cstddef>
#include <span>
#include <vector>

#include "segments.hpp"

namespace adasum {

/// @cond internal
namespace detail {
struct words_of_parts {
  static constexpr const char *whole = "adasum::parts", *part = "the part of rank";
};
}  // namespace detail
/// @endcond

/// How the result of a reduce_scatter is divided among the ranks: the first elements go to rank 0, the next ones to rank 1,
/// and so on. There is one part for each rank. Parts may be empty, and a segment may extend over several parts. They are made
/// as segments are; size() says how many there are, total() how many elements they have.
///
///     adasum::parts{1024, 0, 4096};                       // lengths, of any integer types
class parts : public detail::cut_by_lengths<detail::words_of_parts> {
 public:
  using cut_by_lengths::cut_by_lengths;

  /// Where the part of a rank lies in the gradient. @pre rank < size()
  index_range of_rank(std::size_t rank) const { return {boundaries()[rank], boundaries()[rank + 1]}; }
  /// size() + 1 boundaries.
  std::span<const std::size_t> offsets() const { return {boundaries().data(), boundaries().size()}; }
};

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
