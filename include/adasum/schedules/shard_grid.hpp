// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "../core/stage.hpp"

namespace adasum::detail {

/// Where a rank stands among replicas × shards (core/parts.hpp).
struct shard_place {
  int replica = 0, index = 0;
  friend constexpr bool operator==(const shard_place&, const shard_place&) = default;
};

/// Which rank has which shard of which replica's gradient; and a schedule's stages, which are those among as many ranks
/// as there are replicas, as they run among all ranks: each rank meets its counterparts, the ranks that have the same
/// shard of other replicas' gradients, and inner products are added over the shards as well. Every counterpart of a
/// group of ranks that add their products adds the same numbers in the same order: so all shards of a result get the
/// same weights.
class shard_grid {
 public:
  shard_grid() = default;
  /// @param places  one for each rank
  /// @throws bad_input  a negative number, a place that two ranks have, one that none has. In words that follow `call`
  shard_grid(std::span<const shard_place> places, const std::string& call) : rank_at_(places.size(), nobody) {
    std::size_t last = 0, widest = 0;  // ranks with the highest numbers
    for (std::size_t rank = 0; rank < places.size(); ++rank) {
      const auto place = places[rank];
      if (place.replica < 0 || place.index < 0)
        throw bad_input({call, ": ", rank_name(rank), " says that it has ", name_of(place)});
      if (place.replica >= places[last].replica) last = rank;
      if (place.index > places[widest].index) widest = rank;
    }
    const auto replicas = static_cast<std::size_t>(places[last].replica) + 1;
    shards_ = static_cast<std::size_t>(places[widest].index) + 1;
    bool fits = replicas * shards_ == places.size();
    for (std::size_t rank = 0; fits && rank < places.size(); ++rank)
      fits = std::exchange(rank_at_[slot(places[rank])], static_cast<int>(rank)) == nobody;
    if (fits) return;
    for (std::size_t rank = 0; rank < places.size(); ++rank)
      for (std::size_t other = 0; other < rank; ++other)
        if (places[other] == places[rank])
          throw bad_input({call, ": ", rank_name(other), " and ", rank_name(rank), " both say that they have ",
                           name_of(places[rank])});
    throw bad_input({call, ": nobody has ", name_of(first_missing(places)), "; the highest numbers are replica ",
                     replicas - 1, " (", rank_name(last), ") and shard ", shards_ - 1, " (", rank_name(widest),
                     "), so there would be ", counted(replicas, "replica"), " of ", counted(shards_, "shard"),
                     ", both numbered from 0, on ", counted(places.size(), "rank")});
  }

  /// Whether there is none: then every rank has a gradient of its own.
  bool empty() const { return rank_at_.empty(); }
  std::size_t replicas() const { return rank_at_.size() / shards_; }
  std::size_t shards() const { return shards_; }
  int rank_at(shard_place place) const { return rank_at_[slot(place)]; }
  /// The ranks that have one replica's gradient, shard by shard.
  std::span<const int> ranks_of(int replica) const { return {rank_at_.data() + slot({replica, 0}), shards_}; }

  /// A stage of the schedule among replicas, for the rank that has the given shard.
  stage widen(stage one, int index) const {
    for (int& member : one.members) member = rank_at({member, index});
    std::vector<int> all;
    all.reserve(one.sum_over.size() * shards_);
    for (const int replica : one.sum_over)
      for (const int rank : ranks_of(replica)) all.push_back(rank);
    one.sum_over = std::move(all);
    return one;
  }

 private:
  /// Of the places of the grid, replica by replica. @pre no two ranks have the same
  shard_place first_missing(std::span<const shard_place> places) const {
    for (std::size_t i = 0;; ++i) {
      const shard_place one{static_cast<int>(i / shards_), static_cast<int>(i % shards_)};
      std::size_t rank = 0;
      while (rank < places.size() && places[rank] != one) ++rank;
      if (rank == places.size()) return one;
    }
  }

  static std::string name_of(shard_place place) {
    return joined({"shard ", place.index, " of replica ", place.replica});
  }
  std::size_t slot(shard_place place) const {
    return static_cast<std::size_t>(place.replica) * shards_ + static_cast<std::size_t>(place.index);
  }

  static constexpr int nobody = -1;
  std::size_t shards_ = 1;
  std::vector<int> rank_at_;  // replica by replica, shard by shard
};

}  // namespace adasum::detail
