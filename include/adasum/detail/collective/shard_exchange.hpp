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
#include <utility>
#include <vector>

#include "../../core/error.hpp"
#include "../../core/segments.hpp"
#include "../../core/shard.hpp"
#include "../../schedule/shard_grid.hpp"
#include "../../schedule/sum_order.hpp"
#include "../references/communicator_ref.hpp"
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

/// What ranks that have shards of gradients learn of each other when a plan is made: who has which shard, and how long the
/// segments of whole gradients are. In two rounds of exchanges, before each of which all ranks have met: what can fail on one
/// rank alone is done before that.
class shard_exchange {
 public:
  /// @param mine  must outlive this object
  /// @throws bad_input  segments that are replicated do not ascend, or do not exist
  shard_exchange(const communicator_ref& comm, const shard& mine, segments_view segments, std::string call)
      : comm_(comm),
        mine_(mine),
        segments_(segments),
        call_(std::move(call)),
        kept_(comm),
        exchanges_(comm, most_messages) {
    for (std::size_t i = 0; i < mine.replicated.size(); ++i) {
      const auto k = mine.replicated[i];
      if (k >= segments.size())
        throw bad_input(call_ + ": the shard lists segment " + std::to_string(k) +
                        " as replicated, but the shard has only " + counted(segments.size(), "segment"));
      if (i > 0 && k <= mine.replicated[i - 1])
        throw bad_input(call_ + ": the replicated segments must be in ascending order: " + std::to_string(k) +
                        " follows " + std::to_string(mine.replicated[i - 1]));
    }
    entries().resize(static_cast<std::size_t>(comm.size()));
    reserve(entries().size() * sizeof(shard_entry));
  }

  /// The first round.
  void tell_places() {
    const shard_entry own{
        {mine_.replica, mine_.index}, segments_.all().end, hash(segments_.offsets()), replicated_hash()};
    exchanges_.gather_all(std::optional(own), entries(), call_);
  }

  /// After it. @throws bad_input  what ranks say does not fit together: the same on all of them
  shard_grid grid() const {
    const auto& all = kept_.memory.entries;
    std::vector<shard_place> places;
    for (const auto& one : all) places.push_back(one.place);
    shard_grid found(places, call_);
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      if (all[rank].replicated_hash != all[0].replicated_hash)
        throw bad_input(call_ + ": rank 0 and rank " + std::to_string(rank) +
                        " disagree on which segments are replicated, or on their lengths");
      const shard_place first{0, all[rank].place.index};
      require_alike(static_cast<std::size_t>(found.rank_at(first)), rank);
    }
    return found;
  }
  /// Elements of the longest shard.
  std::size_t longest() const {
    std::uint64_t most = 0;
    for (const auto& one : kept_.memory.entries) most = std::max(most, one.length);
    return static_cast<std::size_t>(most);
  }

  /// Before the second round.
  void prepare_lengths(const shard_grid& grid) {
    auto& [all, lengths, received] = kept_.memory;
    lengths.resize(segments_.size());
    for (std::size_t k = 0; k < lengths.size(); ++k) lengths[k] = static_cast<double>(segments_.range(k).size());
    if (mine_.index > 0)
      for (const std::size_t k : mine_.replicated) lengths[k] = 0;
    const auto group = grid.ranks_of(mine_.replica);
    group_.assign(group.begin(), group.end());
    received.resize(lengths.size() * sum_order::most_received(group.size(), radix));
    whole_.lengths.resize(lengths.size());
    for (const auto& one : all) whole_.replica_of_rank.push_back(one.place.replica);
    whole_.replicas = grid.replicas();
    if (mine_.index > 0) whole_.measured_elsewhere = mine_.replicated;
    reserve(lengths.size() * sizeof(double));
  }
  /// The second round.
  void add_lengths() {
    auto& [all, lengths, received] = kept_.memory;
    small_allreduce sum(group_, static_cast<std::size_t>(mine_.index), radix, lengths, received);
    exchanges_.make_all([&](auto& out, auto& in) { return sum.next(out, in); });
    exchanges_.require_success();
    std::ranges::transform(lengths, whole_.lengths.begin(),
                           [](double length) { return static_cast<std::size_t>(length); });
  }
  /// After it.
  whole_gradients whole() && { return std::move(whole_); }

 private:
  static constexpr std::size_t radix = 2, most_messages = 8;  // of one exchange of these sums

  struct buffers {
    std::vector<shard_entry> entries{};  // of all ranks
    std::vector<double> lengths{}, received{};
  };
  std::vector<shard_entry>& entries() { return kept_.memory.entries; }
  void reserve(std::size_t longest) { comm_.reserve(most_messages, longest); }

  std::uint64_t replicated_hash() const {
    std::uint64_t value = hash(mine_.replicated);
    for (const std::size_t k : mine_.replicated) value = hash(std::array{segments_.range(k).size()}, value);
    return value;
  }

  void require_alike(std::size_t first, std::size_t rank) const {
    const auto& a = kept_.memory.entries[first];
    const auto& b = kept_.memory.entries[rank];
    if (a.length == b.length && a.segments_hash == b.segments_hash) return;
    throw bad_input(call_ + ": rank " + std::to_string(first) + " and rank " + std::to_string(rank) + " have shard " +
                    std::to_string(a.place.index) + " of replicas " + std::to_string(a.place.replica) + " and " +
                    std::to_string(b.place.replica) + ", which must be cut alike; " +
                    (a.length != b.length
                         ? "they have " + std::to_string(a.length) + " and " + counted(b.length, "element")
                         : "the boundaries of their segments differ"));
  }

  communicator_ref comm_;
  const shard& mine_;
  segments_view segments_;
  std::string call_;
  std::vector<int> group_;
  whole_gradients whole_;
  left_to_messages<buffers> kept_;
  lasting_exchanges exchanges_;
};

}  // namespace adasum::detail
