// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

/// What the ranks of one exploration do. Plain data: see ranks.cpp for what comes of it.
namespace adasum::test::model {

inline constexpr std::size_t most_ranks = 4, most_runs = 4, most_faults = 2;

enum class work : std::uint8_t {
  in_place,    ///< gradients are combined where they lie: barrier A, sum B, barrier C
  copies,      ///< each publishes a copy of its gradient: barrier A
  unmeasured,  ///< the same as in_place, but without the sum
  sums,        ///< the same as in_place, with two more sums after B, as where vectors nearly cancel
  levels,      ///< of 4 ranks: neighbours meet, then every other rank, and the same on the way back
  behind,      ///< of 4 ranks: neighbours meet, then 0 and 2, while 1 and 3 stay behind, and the same on the way back
  votes,   ///< the same as copies, but each first says what it is about to do, and need not wait to hear that all agree
  setups,  ///< they only tell each other what they are about to do, and wait for that
};

/// Where in a run a rank fails.
enum class point : std::uint8_t {
  none,
  before_first,     ///< before it has published anything
  after_first,      ///< after the first barrier
  after_sum,        ///< before it writes anything
  before_last,      ///< before it arrives at the last barrier
  impatient_first,  ///< it gives up waiting at the first barrier, if it has to wait there
  impatient_sum,
  impatient_last,
};

struct fault {
  point where = point::none;
  std::size_t rank = 0, run = 1;
};

/// A rank that drops its plan after so many runs, while the others go on.
struct departure {
  std::size_t rank = most_ranks, after = 0;
};

/// A rank that is about to do something else in a run, or only waits for all votes.
struct deviation {
  std::size_t rank = most_ranks, run = 1;
  bool in_full = true;  ///< it waits for all votes at once; or else first at a barrier to which no other rank comes
  bool only_waits = false;
};

struct scenario {
  work what = work::in_place;
  std::size_t ranks = 2, runs = 2;
  std::size_t radix = 8;          ///< of barriers
  bool one_address_space = true;  ///< ranks are threads; or processes, with gradients in the shared memory
  bool blocking = false;          ///< how ranks wait
  bool different_plans = false;
  bool gives_up_leaving = false;  ///< the ranks of faults do not wait until they are left alone
  std::array<fault, most_faults> faults{};
  departure leaves{};
  deviation differs{};

  bool fails(point where, std::size_t rank, std::size_t run) const {
    for (const auto& one : faults)
      if (where != point::none && one.where == where && one.rank == rank && one.run == run) return true;
    return false;
  }
};

inline const char* to_text(work what) {
  constexpr const char* texts[] = {"in place",
                                   "copies",
                                   "in place without a sum",
                                   "in place with several sums",
                                   "by levels",
                                   "by levels, some staying behind",
                                   "with votes",
                                   "of votes alone"};
  return texts[static_cast<std::size_t>(what)];
}
inline const char* to_text(point where) {
  constexpr const char* texts[] = {"nowhere",
                                   "before the first barrier",
                                   "after the first barrier",
                                   "after the sum",
                                   "before the last barrier",
                                   "by giving up at the first barrier",
                                   "by giving up at the sum",
                                   "by giving up at the last barrier"};
  return texts[static_cast<std::size_t>(where)];
}
inline std::string to_text(const scenario& one) {
  auto text = std::to_string(one.ranks) + " ranks, " + std::to_string(one.runs) + " runs " + to_text(one.what) +
              (one.radix == 8 ? "" : ", barriers of radix " + std::to_string(one.radix)) +
              (one.one_address_space ? "" : ", in processes") + (one.blocking ? ", blocking" : ", polling");
  if (one.different_plans) text += ", different plans";
  for (const auto& each : one.faults)
    if (each.where != point::none)
      text += ", rank " + std::to_string(each.rank) + " fails in run " + std::to_string(each.run) + " " +
              to_text(each.where);
  if (one.gives_up_leaving) text += ", and does not wait to be left alone";
  if (one.differs.rank < one.ranks)
    text += ", rank " + std::to_string(one.differs.rank) + (one.differs.only_waits ? " waits" : " differs") +
            " in run " + std::to_string(one.differs.run) + (one.differs.in_full ? "" : ", at another barrier");
  if (one.leaves.rank < one.ranks)
    text += ", rank " + std::to_string(one.leaves.rank) + " leaves after run " + std::to_string(one.leaves.after);
  return text;
}

}  // namespace adasum::test::model
