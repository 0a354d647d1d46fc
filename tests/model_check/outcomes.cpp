// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <array>
#include <cstddef>
#include <cstdint>

#include "ranks.hpp"
#include "scenario.hpp"

namespace adasum::test::model {

namespace {

enum class outcome : std::uint8_t { none, good, failed };
std::array<std::array<outcome, most_ranks>, most_runs> outcomes;

}  // namespace

void forget_outcomes() { outcomes = {}; }
void note_outcome(std::size_t run, std::size_t rank, bool good) {
  outcomes[run - 1][rank] = good ? outcome::good : outcome::failed;
}

const char* find_wrong_outcome(const scenario& one) {
  for (std::size_t run = 1; run <= one.runs; ++run) {
    const auto& ended = outcomes[run - 1];
    std::size_t good = 0, failed = 0;
    for (std::size_t rank = 0; rank < one.ranks; ++rank) {
      good += ended[rank] == outcome::good;
      failed += ended[rank] == outcome::failed;
    }
    bool must_fail = one.different_plans || (one.leaves.rank < one.ranks && run > one.leaves.after) ||
                     (one.differs.rank < one.ranks && run == one.differs.run && !one.differs.only_waits);
    bool may_fail = must_fail, may_differ = false;
    for (const auto& each : one.faults) {
      if (each.where == point::none) continue;
      if (run > each.run && one.gives_up_leaving) may_fail = true;
      if (run != each.run) continue;
      may_fail = true;
      // Who gives up after having come to the last barrier may be the only one to fail. So may who fails after it.
      const bool is_last =
          each.where == point::impatient_last || (one.what == work::copies && each.where == point::after_first) ||
          (one.what == work::levels && each.where == point::before_last) ||  // other groups need it no more
          (one.what == work::behind && each.where == point::before_last) ||
          (one.what == work::behind && each.rank % 2 == 1 &&  // it is needed no more at all
           (each.where == point::after_first || each.where == point::impatient_first));
      may_differ = may_differ || is_last;
      must_fail = must_fail || (!is_last && each.where < point::impatient_first);
    }
    if (failed > 0 && !may_fail) return "a run has failed without cause";
    if (good > 0 && must_fail) return "a run has ended well that should have failed";
    if (good > 0 && failed > 0 && !may_differ) return "a run has failed on some ranks only";
  }
  return nullptr;
}

}  // namespace adasum::test::model
