// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <adasum/comm/threads.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/plan.hpp>
#include <adasum/schedule/recursive_doubling.hpp>
#include <adasum/schedule/recursive_halving.hpp>

#include "ranks.hpp"
#include "reduction.hpp"

/// Reductions along several stages, for rules that run by sums of vectors there.
namespace adasum::test {

/// A schedule of whole vectors, or of parts; one type for all, which compiles once.
struct staged {
  static constexpr std::string_view name = "staged";
  static constexpr bool supports_gram_rules = false;
  std::size_t radix;  // 0: whole vectors

  std::vector<stage> stages(int rank, int size, const schedule_input& input) const {
    if (radix == 0) return schedules::recursive_doubling{}.stages(rank, size, input);
    return schedules::recursive_halving{radix}.stages(rank, size, input);
  }
};

inline const std::vector<int> staged_rank_counts{1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17};

/// `runs` runs of one plan on each rank, each on gradients(run).
template <scalar T, class Rule, class Gradients>
std::vector<reduced<T>> reduce(int size, const segments& segs, const Rule& rule, std::size_t radix,
                               const Gradients& gradients, const options& choices = {}, std::uint64_t runs = 1) {
  return results_of(on_ranks(size, [&](const thread_communicator& comm) {
    auto plan = plan_allreduce<T>(serial_space{}, comm, segs, rule, staged{radix}, choices);
    reduced<T> last;
    for (std::uint64_t run = 0; run < runs; ++run) {
      last.gradient = gradients(run)[static_cast<std::size_t>(comm.rank())];
      last.found = plan(last.gradient);
    }
    return last;
  }));
}

}  // namespace adasum::test
