// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "../../core/segments.hpp"
#include "workers.hpp"

/// How work is shared out.
namespace adasum::detail::threads_backend {

/// From when on work is shared out, and in pieces of which size. No result depends on these.
struct sharing_limits {
  /// Work of fewer bytes for each thread is not shared out. To hand out a job and to see its end takes a microsecond or
  /// two, in which a thread reads some 50 KiB from its second cache; and what the calling thread has just written lies there.
  std::size_t least_share = std::size_t{96} << 10;
  /// Sleeping workers are not woken for fewer bytes. It takes the caller some microseconds for each (a system call, and on
  /// virtual machines a way through the hypervisor), and the workers up to 50 until they run: in those, a thread reads 0.5
  /// to 2 MiB. What lies in the caches of the thread that has written it is read faster by that one. But one call that has
  /// woken them helps those that follow: a single call of 2 to 4 MiB takes up to a tenth longer for it, one after another take
  /// a third of the time (two cores of a Xeon).
  std::size_t worth_waking = std::size_t{2} << 20;
  /// Of a piece that one thread takes at a time. The kernels begin with each piece anew, which costs 50 ns and the first
  /// cache lines.
  std::size_t smallest_piece = std::size_t{32} << 10, largest_piece = std::size_t{512} << 10;
  /// Of blocks' sums that are kept at a time, if that is work enough for all threads.
  std::size_t sums = std::size_t{4} << 20;
};

/// Consecutive elements of a window, for one thread at a time: whole segments (as far as they lie in the window), or a part
/// of one.
struct piece {
  std::size_t first, count;  ///< segments
  std::size_t begin, end;    ///< elements, counted from the window's origin
  bool is_part;
  std::size_t sums = 0;  ///< of a part that is measured: where those of its blocks begin

  slice of(const slice& window) const {
    return {window.segments.part(first, count), {window.origin + begin, window.origin + end}, window.origin};
  }
};

/// Cuts a window into pieces of `length` elements or more, but fewer than three times as many, in order. Segments of less
/// than twice that length stay whole. All parts of others, but the last ones, have just that length.
inline void cut(const slice& window, std::size_t length, std::vector<piece>& pieces) {
  pieces.clear();
  const auto [first, last] = window.touched();
  bool is_open = false;  // the last piece may get more segments
  for (std::size_t k = first; k < last; ++k) {
    const auto [begin, end] = window.local(k);
    const auto parts = (end - begin) / length;
    if (parts >= 2) {
      for (std::size_t i = 0; i < parts; ++i)
        pieces.push_back({k, 1, begin + i * length, i + 1 == parts ? end : begin + (i + 1) * length, true});
      is_open = false;
    } else if (begin != end) {
      if (!is_open) pieces.push_back({k, 0, begin, begin, false});
      auto& one = pieces.back();
      one.count = k + 1 - one.first;
      one.end = end;
      is_open = one.end - one.begin < length;
    }
  }
}

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
