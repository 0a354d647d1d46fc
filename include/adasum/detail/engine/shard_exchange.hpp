// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "../../core/error.hpp"
#include "../../core/parts.hpp"
#include "../../core/segments.hpp"
#include "../../schedules/shard_grid.hpp"
#include "../../schedules/sum_order.hpp"
#include "../references/communicator_ref.hpp"
#include "../references/erased.hpp"
#include "call_signature.hpp"
#include "engine_settings.hpp"
#include "lasting_exchanges.hpp"
#include "small_exchanges.hpp"

namespace adasum::detail {

/// What a rank tells all others of its shard.
struct shard_entry {
  shard_place place{};
  std::uint64_t length = 0;
  std::uint64_t segments_hash = 0;
  std::uint64_t replicated_hash = 0;  ///< of the segments that all shards have whole, and of their lengths
  std::uint64_t is_there = 0;
};

/// What ranks that have shards of gradients learn of each other when a plan is made.
struct known_shards {
  shard_grid grid{};
  std::size_t longest = 0;  ///< elements of the longest shard
  shard_layout whole{};
};

/// @throws bad_input  segments that are replicated do not ascend, or do not exist
inline void require_valid_replicated(const shard& mine, segments_view segments, const std::string& call) {
  for (std::size_t i = 0; i < mine.replicated.size(); ++i) {
    const auto k = mine.replicated[i];
    if (k >= segments.size())
      throw bad_input({call, ": the shard lists segment ", k, " as replicated, but the shard has only ",
                       counted(segments.size(), "segment")});
    if (i > 0 && k <= mine.replicated[i - 1])
      throw bad_input(
          {call, ": the replicated segments must be in ascending order: ", k, " follows ", mine.replicated[i - 1]});
  }
}

inline shard_entry entry_of(const shard& mine, segments_view segments) {
  shard_entry found{{mine.replica, mine.index}, segments.all().end, hash(segments.offsets()), hash(mine.replicated)};
  for (const std::size_t k : mine.replicated)
    found.replicated_hash = hash(std::array{segments.range(k).size()}, found.replicated_hash);
  return found;
}

/// @throws bad_input  what ranks say does not fit together: the same on all of them
inline shard_grid grid_of(std::span<const shard_entry> all, const std::string& call) {
  std::vector<shard_place> places;
  for (const auto& one : all) places.push_back(one.place);
  shard_grid found(places, call);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const auto& b = all[rank];
    if (b.replicated_hash != all[0].replicated_hash)
      throw bad_input(
          {call, ": rank 0 and rank ", rank, " disagree on which segments are replicated, or on their lengths"});
    const auto first = static_cast<std::size_t>(found.rank_at({0, b.place.index}));
    const auto& a = all[first];
    if (a.length == b.length && a.segments_hash == b.segments_hash) continue;
    throw bad_input({call, ": rank ", first, " and rank ", rank, " have shard ", a.place.index, " of replicas ",
                     a.place.replica, " and ", b.place.replica, ", which must be cut alike; ",
                     a.length != b.length ? joined({"they have ", a.length, " and ", counted(b.length, "element")})
                                          : "the boundaries of their segments differ"});
  }
  return found;
}

/// Ranks find out who has which shard, and how long the segments of whole gradients are. In two rounds of exchanges, before
/// each of which all ranks meet: what can fail on one rank alone is done before that. Collective.
/// @param meet  meet(): see collective_setup
/// @throws bad_input  what require_valid_replicated and grid_of throw
inline known_shards exchange_shards(const communicator_ref& comm, const shard& mine, segments_view segments,
                                    const std::string& call, function_ref<void()> meet) {
  constexpr std::size_t radix = 2, most_messages = 8;  // of one exchange of these sums
  struct buffers {
    std::vector<shard_entry> entries{};  // of all ranks
    std::vector<double> lengths{}, received{};
  };
  require_valid_replicated(mine, segments, call);
  known_shards found;
  leak_if_in_flight<buffers> kept(comm);
  auto& [all, lengths, received] = kept.memory;
  lasting_exchanges exchanges(comm, most_messages);
  all.resize(static_cast<std::size_t>(comm.size()));
  comm.reserve(most_messages, all.size() * sizeof(shard_entry));
  meet();
  exchanges.gather_all(std::optional(entry_of(mine, segments)), all, call);

  found.grid = grid_of(all, call);
  for (std::size_t k = 0; k < segments.size(); ++k) lengths.push_back(static_cast<double>(segments.range(k).size()));
  if (mine.index > 0) {
    for (const std::size_t k : mine.replicated) lengths[k] = 0;
    found.whole.measured_elsewhere = mine.replicated;
  }
  const auto ranks = found.grid.ranks_of(mine.replica);
  const std::vector<int> group(ranks.begin(), ranks.end());
  received.resize(lengths.size() * sum_order::most_received(group.size(), radix));
  found.whole.lengths.resize(lengths.size());
  found.whole.replicas = found.grid.replicas();
  for (const auto& one : all) {
    found.longest = std::max(found.longest, static_cast<std::size_t>(one.length));
    found.whole.replica_of_rank.push_back(one.place.replica);
  }
  comm.reserve(most_messages, lengths.size() * sizeof(double));
  meet();
  small_allreduce sum(group, static_cast<std::size_t>(mine.index), radix, lengths, received);
  exchanges.make_all([&](auto& out, auto& in) { return sum.next(out, in); });
  exchanges.require_success();
  std::ranges::transform(lengths, found.whole.lengths.begin(),
                         [](double length) { return static_cast<std::size_t>(length); });
  return found;
}

}  // namespace adasum::detail
