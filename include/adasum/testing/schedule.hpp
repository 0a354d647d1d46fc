// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "../core/concepts.hpp"
#include "../core/error.hpp"
#include "../core/stage.hpp"
#include "schedule_simulation.hpp"
#include "taken_members.hpp"

namespace adasum {
namespace detail {

/// What check_schedule does for one number of ranks and one input.
template <class Schedule>
class schedule_check {
 public:
  schedule_check(const Schedule& order, int size, const schedule_input& input)
      : order_(order), size_(size), input_(input) {}

  /// @throws bad_input
  void run() const {
    try {
      require_pure();
      schedule_simulation ranks(order_, size_, input_);
      ranks.require_sums();
      ranks.combine();
      // Two rules, or gradients in another order, make another tree. A rule that needs no tree asks for none.
      ranks.require_root(has_own_tree() || !input_.along_tree ? std::string() : defining_tree(ranks.size()));
      ranks.gather();
      if (!input_.along_tree) require_one_stage(ranks);
      require(!std::string_view(order_.name).empty(), "its name is empty");
    } catch (const bad_input& wrong) {
      throw bad_input(
          {"adasum::check_schedule: ", std::string_view(order_.name), ", ", described(), ": ", wrong.what()});
    }
  }

 private:
  bool has_own_tree() const {
    if constexpr (has_inner_rule<Schedule>) return true;
    if constexpr (requires { order_.leaf_ranks(size_, input_); }) return !order_.leaf_ranks(size_, input_).empty();
    return false;
  }

  std::string described() const {
    return joined({counted(size_, "rank"), ", ", counted(input_.length, "element"),
                   input_.along_tree ? "" : ", a rule not along the tree",
                   input_.in_place ? ", in shared memory" : ""});
  }

  /// Asked again, it answers the same.
  void require_pure() const {
    const Schedule copy = order_;
    for (int rank = 0; rank < size_; ++rank) {
      const std::vector<stage> first = order_.stages(rank, size_, input_);
      require(first == copy.stages(rank, size_, input_),
              "stages() gives " + rank_name(rank) + " other stages when it is asked again");
      require(has_inner_rule<Schedule> || std::ranges::count(first, true, &stage::inner) == 0,
              rank_name(rank) + " marks stages as inner: only schedules::hierarchical has a rule for these");
    }
  }

  void require_one_stage(const schedule_simulation& ranks) const {
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const auto& stages = ranks.stages(r);
      for (std::size_t i = 0; i < stages.size(); ++i)
        require(stages[i].inner || (i + 1 == stages.size() && stages[i].leaf_offsets.front() == 0 &&
                                    stages[i].leaf_offsets.back() == ranks.size()),
                rank_name(r) + " does not combine all gradients in one stage, though supports_gram_rules says so");
    }
  }

  const Schedule& order_;
  int size_;
  schedule_input input_;
};

}  // namespace detail

/// Checks the stages of all ranks for one number of ranks and one input, as plain data; nothing is sent.
///
///   * the members of each stage agree on it, and nobody waits for ever;
///   * a pairwise rule meets the tree of tree_order.hpp (not asked of schedules with `leaf_ranks`, nor of
///     schedules::hierarchical, which make their own; they must make the same on all ranks);
///   * sums of inner products count every element once;
///   * everybody gets the whole result back;
///   * rules that are not pairwise see all gradients in one stage, where input.along_tree is false;
///   * stages() gives the same answer again.
///
/// @return the names of the optional members that the library takes
/// @throws bad_input  saying what is wrong first
template <schedule Schedule>
std::vector<std::string> check_schedule(const Schedule& order, int size, const schedule_input& input) {
  detail::schedule_check<Schedule>(order, size, input).run();
  return detail::taken_members_of_schedule<Schedule>();
}

/// The same for inputs of many kinds: short and long gradients, among them some with fewer elements than ranks; in
/// shared memory where the schedule can work there; rules of the whole Gram matrix where it supports them.
template <schedule Schedule>
std::vector<std::string> check_schedule(const Schedule& order, int size) {
  for (const std::size_t length : {0u, 1u, 2u, 7u, 1000u, 100'003u})
    for (const bool along_tree : {true, false}) {
      if (!along_tree && !Schedule::supports_gram_rules) continue;
      for (const bool once : {false, true}) {
        schedule_input input{.length = length, .element_size = 4, .segments = 3, .along_tree = along_tree};
        input.once = once;
        check_schedule(order, size, input);
        if constexpr (requires { order.uses_shared_memory(size, input); })
          if (order.uses_shared_memory(size, input) != shared_memory_use::none) {
            input.in_place = true;
            check_schedule(order, size, input);
          }
      }
    }
  return detail::taken_members_of_schedule<Schedule>();
}

/// The same for each of these numbers of ranks.
template <schedule Schedule>
std::vector<std::string> check_schedule(const Schedule& order,
                                        const std::vector<int>& sizes = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 21, 32}) {
  for (const int size : sizes) check_schedule(order, size);
  return detail::taken_members_of_schedule<Schedule>();
}

}  // namespace adasum
