// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
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
  shard_grid(std::span<const shard_place> places, const std::string& call) : rank_at_(places.size()) {
    std::iota(rank_at_.begin(), rank_at_.end(), 0);
    const auto place_of = [&](int rank) { return places[static_cast<std::size_t>(rank)]; };
    std::ranges::stable_sort(rank_at_, [&](int a, int b) {
      const auto one = place_of(a), other = place_of(b);
      return one.replica != other.replica ? one.replica < other.replica : one.index < other.index;
    });
    std::size_t replicas = 1;
    for (const int rank : rank_at_) {
      const auto place = place_of(rank);
      if (place.replica < 0 || place.index < 0)
        throw bad_input(call + ": " + name_of(rank) + " says that it has " + name_of(place));
      replicas = std::max(replicas, static_cast<std::size_t>(place.replica) + 1);
      shards_ = std::max(shards_, static_cast<std::size_t>(place.index) + 1);
    }
    for (std::size_t i = 1; i < rank_at_.size(); ++i)
      if (place_of(rank_at_[i]) == place_of(rank_at_[i - 1]))
        throw bad_input(call + ": " + name_of(rank_at_[i - 1]) + " and " + name_of(rank_at_[i]) +
                        " both say that they have " + name_of(place_of(rank_at_[i])));
    if (replicas * shards_ != rank_at_.size()) refuse_incomplete(places, replicas, call);
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
  /// Some shard of some replica is nowhere, so a rank has named another in its place: where all others fit into a grid of as
  /// many places as there are ranks, it is that one.
  [[noreturn]] void refuse_incomplete(std::span<const shard_place> places, std::size_t replicas,
                                      const std::string& call) const {
    constexpr int nobody = -1;
    const auto ranks = places.size();
    const auto place_of = [&](int rank) { return places[static_cast<std::size_t>(rank)]; };
    int culprit = nobody;
    std::size_t shards = 0;
    bool are_several = false;
    for (std::size_t s = 1; s <= ranks; ++s) {
      const auto is_outside = [&](int rank) {
        const auto [replica, index] = place_of(rank);
        return static_cast<std::size_t>(index) >= s || static_cast<std::size_t>(replica) >= ranks / s;
      };
      if (ranks % s != 0 || std::ranges::count_if(rank_at_, is_outside) != 1) continue;
      const int rank = *std::ranges::find_if(rank_at_, is_outside);
      are_several = are_several || (culprit != nobody && culprit != rank);
      culprit = rank;
      shards = s;
    }
    std::string why;
    if (culprit == nobody || are_several) {
      const int last = *std::ranges::max_element(rank_at_, {}, [&](int rank) { return place_of(rank).index; });
      why = "; the highest numbers are replica " + std::to_string(replicas - 1) + " (" + name_of(rank_at_.back()) +
            ") and shard " + std::to_string(shards_ - 1) + " (" + name_of(last) + "), so there would be ";
      culprit = nobody;
      shards = shards_;
    } else {
      why = ", but " + name_of(culprit) + " says that it has " + name_of(place_of(culprit)) + "; there should be ";
      replicas = ranks / shards;
    }
    std::size_t i = 0;  // the first place without a rank, once they are sorted
    const auto expected = [&] { return shard_place{static_cast<int>(i / shards), static_cast<int>(i % shards)}; };
    for (const int rank : rank_at_) {
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

  std::size_t shards_ = 1;
  std::vector<int> rank_at_;  // replica by replica, shard by shard
};

}  // namespace adasum::detail
