// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "../core/stage.hpp"

namespace adasum::detail {

/// Where a rank stands among replicas × shards (core/shard.hpp).
struct shard_place {
  int replica = 0, index = 0;
  friend constexpr bool operator==(const shard_place&, const shard_place&) = default;
};

/// Which rank has which shard of which replica's gradient; and a schedule's stages, which are those among so many ranks as
/// there are replicas, as they run among all ranks: each rank meets its counterparts, the ranks that have the same shard of
/// other replicas' gradients, and inner products are added over the shards as well. Every counterpart of a group of ranks
/// that add their products adds the same numbers in the same order: so all shards of a result get the same weights.
class shard_grid {
 public:
  shard_grid() = default;
  /// @param places  one for each rank
  /// @throws bad_input  a negative number, a place that two ranks have, one that none has. In words that follow `call`
  shard_grid(std::span<const shard_place> places, const std::string& call) {
    const auto rank_name = [](std::size_t rank) { return "rank " + std::to_string(rank); };
    const auto place_name = [](shard_place place) {
      return "shard " + std::to_string(place.index) + " of replica " + std::to_string(place.replica);
    };
    const auto ranks = places.size();
    std::size_t replicas = 1;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const auto [replica, index] = places[rank];
      if (replica < 0 || index < 0)
        throw bad_input(call + ": " + rank_name(rank) + " says that it has " + place_name(places[rank]));
      replicas = std::max(replicas, static_cast<std::size_t>(replica) + 1);
      shards_ = std::max(shards_, static_cast<std::size_t>(index) + 1);
    }
    // Not their product, which may overflow.
    if (replicas > ranks || shards_ > ranks || replicas * shards_ != ranks)
      throw bad_input(call + ": " + std::to_string(replicas) + (replicas == 1 ? " replica" : " replicas") + " of " +
                      std::to_string(shards_) + (shards_ == 1 ? " shard" : " shards") + " are not " +
                      std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks"));
    constexpr int nobody = -1;
    rank_at_.assign(ranks, nobody);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      auto& at = rank_at_[slot(places[rank])];
      if (at != nobody)
        throw bad_input(call + ": " + rank_name(static_cast<std::size_t>(at)) + " and " + rank_name(rank) +
                        " both say that they have " + place_name(places[rank]));
      at = static_cast<int>(rank);
    }
  }

  /// Whether there is none: then every rank has a gradient of its own.
  bool empty() const { return rank_at_.empty(); }
  std::size_t replicas() const { return rank_at_.size() / shards_; }
  std::size_t shards() const { return shards_; }
  int rank_at(shard_place place) const { return rank_at_[slot(place)]; }
  /// The ranks that have one replica's gradient, shard by shard.
  std::span<const int> ranks_of(int replica) const { return std::span(rank_at_).subspan(slot({replica, 0}), shards_); }

  /// A stage of the schedule among replicas, for the rank that has the given shard.
  stage widen(stage one, int index) const {
    for (int& member : one.members) member = rank_at({member, index});
    std::vector<int> all;
    all.reserve(one.sum_over.size() * shards_);
    for (const int replica : one.sum_over) all.insert(all.end(), ranks_of(replica).begin(), ranks_of(replica).end());
    one.sum_over = std::move(all);
    return one;
  }

 private:
  std::size_t slot(shard_place place) const {
    return static_cast<std::size_t>(place.replica) * shards_ + static_cast<std::size_t>(place.index);
  }

  std::size_t shards_ = 1;
  std::vector<int> rank_at_;  // replica by replica
};

}  // namespace adasum::detail
