// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "pieces.hpp"
#include "workers.hpp"

namespace adasum::detail::threads_backend {

/// What the copies of a space share.
struct team {
  explicit team(std::size_t threads) : all(threads) {}

  workers all;
  sharing_limits limits;
  // Kept from call to call; of whoever has the workers' turn.
  std::vector<piece> pieces;
  std::vector<double> sums;
};

/// One call's share of a team: several threads, or the calling one alone.
class team_turn {
 public:
  /// @param bytes      that the call reads
  /// @param all_bytes  that this call and those which follow at once read
  team_turn(team& shared, std::size_t bytes, std::size_t all_bytes)
      : team_(shared),
        participants_(std::min(shared.all.size(), bytes / shared.limits.least_share)),
        wakes_(all_bytes >= shared.limits.worth_waking),
        turn_(shared.all, participants_ >= 2),
        is_alone_(!turn_ || !(wakes_ || shared.all.any_awake(participants_))) {}

  /// Nobody else helps: the work is too short, or the workers are at another thread's.
  bool is_alone() const { return is_alone_; }
  std::size_t participants() const { return participants_; }
  /// How many bytes a thread takes at a time, of so many: few enough that all end at the same time.
  std::size_t bytes_at_a_time(std::size_t bytes) const {
    return std::clamp(bytes / (16 * participants_), team_.limits.smallest_piece, team_.limits.largest_piece);
  }

  std::vector<piece>& pieces() const { return team_.pieces; }
  std::vector<double>& sums() const { return team_.sums; }

  /// See workers. @pre !is_alone()
  template <class Body>
  void for_each(std::size_t count, const Body& body) const {
    team_.all.for_each(participants_, wakes_, count, body);
  }

 private:
  team& team_;
  std::size_t participants_;
  bool wakes_;
  workers::turn turn_;
  bool is_alone_;
};

}  // namespace adasum::detail::threads_backend
