// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "../../core/error.hpp"
#include "../../core/message.hpp"
#include "../../core/optional_members.hpp"
#include "../../core/segments.hpp"
#include "../../core/shard.hpp"
#include "../../schedule/shard_grid.hpp"
#include "../../schedule/sum_order.hpp"
#include "allgather.hpp"
#include "attempt.hpp"
#include "call_signature.hpp"
#include "engine_settings.hpp"
#include "small_allreduce.hpp"

namespace adasum::detail {

/// What a rank tells all others of its shard.
struct shard_entry {
  shard_place place{};
  std::uint64_t length = 0;
  std::uint64_t segments_hash = 0;
  std::uint64_t replicated_hash = 0;  ///< of the segments that all shards have whole, and of their lengths
};

/// What ranks that have shards of gradients learn of each other when a plan is made: who has which shard, and how long the
/// segments of whole gradients are. In two rounds of exchanges, before each of which all ranks have met: in a round, a rank
/// on which an exchange fails still makes the others, so that nobody waits for it.
class shard_exchange {
 public:
  /// @throws bad_input  segments that are replicated do not ascend, or do not exist
  shard_exchange(const shard& mine, segments_view segments, int size, const std::string& call)
      : mine_(mine), segments_(segments), call_(call), memory_(std::make_unique<buffers>()) {
    for (std::size_t i = 0; i < mine.replicated.size(); ++i) {
      const auto k = mine.replicated[i];
      if (k >= segments.size())
        throw bad_input(call + ": segment " + std::to_string(k) + " is to be replicated, of " +
                        std::to_string(segments.size()) + (segments.size() == 1 ? " segment" : " segments"));
      if (i > 0 && k <= mine.replicated[i - 1])
        throw bad_input(call + ": the replicated segments do not ascend: " + std::to_string(k) + " follows " +
                        std::to_string(mine.replicated[i - 1]));
    }
    memory_->own = {{mine.replica, mine.index}, segments.all().end, hash(segments.offsets()), replicated_hash()};
    memory_->entries.resize(static_cast<std::size_t>(size));
    memory_->out.reserve(most_messages);
    memory_->in.reserve(most_messages);
  }

  /// The first round.
  template <class Space, class Comm>
  void tell_places(const Space& space, const Comm& comm) {
    make_all(space, comm,
             allgather(std::as_bytes(std::span(&memory_->own, 1)), comm.rank(), comm.size(),
                       std::as_writable_bytes(std::span(memory_->entries))));
  }

  /// After it. @throws bad_input  what ranks say does not fit together: the same on all of them
  shard_grid grid() const {
    const auto& all = memory_->entries;
    std::vector<shard_place> places;
    for (const auto& one : all) places.push_back(one.place);
    shard_grid found(places, call_);
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      if (all[rank].replicated_hash != all[0].replicated_hash)
        throw bad_input(call_ + ": rank 0 and rank " + std::to_string(rank) +
                        " disagree on which segments are replicated, or on their lengths");
      const auto first = static_cast<std::size_t>(found.rank_at({0, all[rank].place.index}));
      require_alike(first, rank);
    }
    return found;
  }
  /// Elements of the longest shard.
  std::size_t longest() const {
    std::uint64_t most = 0;
    for (const auto& one : memory_->entries) most = std::max(most, one.length);
    return most;
  }

  /// Before the second round: allocates what it needs.
  void prepare_lengths(const shard_grid& grid) {
    auto& lengths = memory_->lengths;
    lengths.resize(segments_.size());
    for (std::size_t k = 0; k < lengths.size(); ++k) lengths[k] = static_cast<double>(segments_.range(k).size());
    if (mine_.index > 0)
      for (const std::size_t k : mine_.replicated) lengths[k] = 0;
    const auto group = grid.ranks_of(mine_.replica);
    memory_->group.assign(group.begin(), group.end());
    memory_->received.resize(lengths.size() * sum_order::most_received(group.size(), radix));
    memory_->whole.lengths.resize(lengths.size());
    for (const auto& one : memory_->entries) memory_->whole.replica_of_rank.push_back(one.place.replica);
    memory_->whole.replicas = grid.replicas();
    if (mine_.index > 0) memory_->whole.measured_elsewhere = mine_.replicated;
  }
  /// The second round.
  template <class Space, class Comm>
  void add_lengths(const Space& space, const Comm& comm) {
    make_all(space, comm,
             small_allreduce(memory_->group, static_cast<std::size_t>(mine_.index), radix, memory_->lengths,
                             memory_->received));
    std::ranges::transform(memory_->lengths, memory_->whole.lengths.begin(),
                           [](double length) { return static_cast<std::size_t>(length); });
  }
  /// After it.
  whole_gradients whole() && { return std::move(memory_->whole); }

 private:
  static constexpr std::size_t radix = 2, most_messages = 8;  // of one exchange of these sums

  /// What exchanges use. Where this rank gives up waiting for another, messages may still be in flight, and it stays.
  struct buffers {
    shard_entry own;
    std::vector<shard_entry> entries;  // of all ranks
    std::vector<int> group;
    std::vector<double> lengths, received;
    std::vector<outgoing> out;
    std::vector<incoming> in;
    whole_gradients whole;
  };

  std::uint64_t replicated_hash() const {
    std::uint64_t value = hash(mine_.replicated);
    for (const std::size_t k : mine_.replicated) value = hash(std::array{segments_.range(k).size()}, value);
    return value;
  }

  void require_alike(std::size_t first, std::size_t rank) const {
    const auto& a = memory_->entries[first];
    const auto& b = memory_->entries[rank];
    if (a.length == b.length && a.segments_hash == b.segments_hash) return;
    throw bad_input(call_ + ": rank " + std::to_string(first) + " and rank " + std::to_string(rank) + " have shard " +
                    std::to_string(a.place.index) + " of replicas " + std::to_string(a.place.replica) + " and " +
                    std::to_string(b.place.replica) + ", which are cut alike; " +
                    (a.length != b.length
                         ? "theirs have " + std::to_string(a.length) + " and " + std::to_string(b.length) + " elements"
                         : "the boundaries of their segments differ"));
  }

  template <class Space, class Comm, class Exchanges>
  void make_all(const Space& space, const Comm& comm, Exchanges run) {
    auto& out = memory_->out;
    auto& in = memory_->in;
    std::exception_ptr failed;
    for (; run.next(out, in); out.clear(), in.clear()) {
      try {
        attempt([&] { comm.exchange(space, std::span<const outgoing>(out), std::span<const incoming>(in)); });
      } catch (const timeout_error&) {
        if (gave_up(comm)) static_cast<void>(memory_.release());
        throw;
      } catch (...) {
        if (!failed) failed = std::current_exception();
      }
    }
    if (failed) std::rethrow_exception(failed);
  }

  const shard& mine_;
  segments_view segments_;
  std::string call_;
  std::unique_ptr<buffers> memory_;
};

}  // namespace adasum::detail
