// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <algorithm>
#include <compare>
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
  friend constexpr auto operator<=>(const shard_place&, const shard_place&) = default;
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
    const auto ranks = places.size();
    std::size_t replicas = 1;
    bool fits = true;
    for (const auto [replica, index] : places) {
      fits = fits && replica >= 0 && index >= 0;
      replicas = std::max(replicas, static_cast<std::size_t>(replica) + 1);
      shards_ = std::max(shards_, static_cast<std::size_t>(index) + 1);
    }
    fits = fits && replicas * shards_ == ranks;
    for (std::size_t rank = 0; fits && rank < ranks; ++rank)
      fits = std::exchange(rank_at_[slot(places[rank])], static_cast<int>(rank)) == nobody;
    if (!fits) refuse(places, call);
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
  /// Says what is wrong, of the ranks in the order of their places.
  [[noreturn]] static void refuse(std::span<const shard_place> places, const std::string& call) {
    const auto place_of = [&](int rank) { return places[static_cast<std::size_t>(rank)]; };
    std::vector<int> sorted;
    for (int rank = 0; rank < static_cast<int>(places.size()); ++rank) {
      auto at = sorted.end();
      while (at != sorted.begin() && place_of(rank) < place_of(at[-1])) --at;
      sorted.insert(at, rank);
    }
    for (const int rank : sorted)
      if (place_of(rank).replica < 0 || place_of(rank).index < 0)
        throw bad_input(call + ": " + name_of(rank) + " says that it has " + name_of(place_of(rank)));
    for (std::size_t i = 1; i < sorted.size(); ++i)
      if (place_of(sorted[i]) == place_of(sorted[i - 1]))
        throw bad_input(call + ": " + name_of(sorted[i - 1]) + " and " + name_of(sorted[i]) +
                        " both say that they have " + name_of(place_of(sorted[i])));
    refuse_incomplete(places, sorted, call);
  }

  /// Some shard of some replica is nowhere, so a rank has named another in its place: where all others fit into a grid of as
  /// many places as there are ranks, it is that one.
  [[noreturn]] static void refuse_incomplete(std::span<const shard_place> places, const std::vector<int>& sorted,
                                             const std::string& call) {
    const auto ranks = places.size();
    const auto place_of = [&](int rank) { return places[static_cast<std::size_t>(rank)]; };
    int culprit = nobody;
    std::size_t replicas = 0, shards = 0;
    bool are_several = false;
    for (std::size_t s = 1; s <= ranks; ++s) {
      int outside = nobody;
      std::size_t count = 0;
      for (const int rank : sorted)
        if (static_cast<std::size_t>(place_of(rank).index) >= s ||
            static_cast<std::size_t>(place_of(rank).replica) >= ranks / s) {
          if (count++ == 0) outside = rank;
        }
      if (ranks % s != 0 || count != 1) continue;
      are_several = are_several || (culprit != nobody && culprit != outside);
      culprit = outside;
      replicas = ranks / s;
      shards = s;
    }
    std::string why;
    if (culprit == nobody || are_several) {
      int last = sorted.front();  // the first of those with the highest shard
      for (const int rank : sorted)
        if (place_of(rank).index > place_of(last).index) last = rank;
      culprit = nobody;
      replicas = static_cast<std::size_t>(place_of(sorted.back()).replica) + 1;
      shards = static_cast<std::size_t>(place_of(last).index) + 1;
      why = "; the highest numbers are replica " + std::to_string(replicas - 1) + " (" + name_of(sorted.back()) +
            ") and shard " + std::to_string(shards - 1) + " (" + name_of(last) + "), so there would be ";
    } else {
      why = ", but " + name_of(culprit) + " says that it has " + name_of(place_of(culprit)) + "; there should be ";
    }
    std::size_t i = 0;  // the first place without a rank
    const auto expected = [&] { return shard_place{static_cast<int>(i / shards), static_cast<int>(i % shards)}; };
    for (const int rank : sorted) {
      if (rank == culprit) continue;
      if (place_of(rank) != expected()) break;
      ++i;
    }
    throw bad_input(call + ": nobody has " + name_of(expected()) + why + counted(replicas, "replica") + " of " +
                    counted(shards, "shard") + ", both numbered from 0, on " + counted(ranks, "rank"));
  }

  static std::string name_of(int rank) { return "rank " + std::to_string(rank); }
  static std::string name_of(shard_place place) {
    return "shard " + std::to_string(place.index) + " of replica " + std::to_string(place.replica);
  }
  std::size_t slot(shard_place place) const {
    return static_cast<std::size_t>(place.replica) * shards_ + static_cast<std::size_t>(place.index);
  }

  static constexpr int nobody = -1;
  std::size_t shards_ = 1;
  std::vector<int> rank_at_;  // replica by replica, shard by shard
};

}  // namespace adasum::detail
