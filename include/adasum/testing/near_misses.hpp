// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <concepts>
#include <cstddef>
#include <ranges>

#include "../core/concepts.hpp"
#include "../core/optional_members.hpp"
#include "../core/scalar.hpp"
#include "../core/space_members.hpp"
#include "../detail/references/refused_members.hpp"

/// Names that are nearly those of optional members, of the same kind, in types that do not have the member itself. C++20 can
/// ask a type only for names that it knows; these are the likeliest. Not for programs, which would pay for each name: checkers
/// alone ask.
namespace adasum::detail {

template <class Rule>
concept names_need = requires {
  { Rule::need } -> std::convertible_to<inner_products>;
};
template <class Type>
concept names_params = requires(const Type& type) {
  requires std::convertible_to<std::ranges::range_value_t<decltype(type.params())>, double>;
};
template <class Rule>
concept names_fallback = requires(const Rule& rule) {
  { rule.fallback } -> std::convertible_to<std::size_t>;
};
template <class Comm>
concept names_node = requires(const Comm& comm) {
  { comm.node() } -> std::ranges::range;
};
template <class Schedule>
concept names_use_of_shared_memory =
    requires(const Schedule& order, const schedule_input& input) { order.use_shared_memory(1, input); };
template <class Schedule>
concept names_leaf_rank = requires(const Schedule& order, const schedule_input& input) { order.leaf_rank(1, input); };

template <class Rule>
constexpr void refuse_near_misses_of_rule() {
  static_assert(
      (says_what_it_needs<Rule> || !names_need<Rule>) && (has_parameters<Rule> || !names_params<Rule>) &&
          (counts_fallbacks<Rule> || !names_fallback<Rule>) &&
          (says_whether_whole_model<Rule> ||
           (!requires { &Rule::wholemodel; } && !requires { &Rule::is_whole_model; })) &&
          (says_whether_nonfinite<Rule> ||
           (!requires { &Rule::leave_out_nonfinite; } && !requires { &Rule::leaves_out_non_finite; })),
      "adasum: the rule has a member need, wholemodel, is_whole_model, leave_out_nonfinite, leaves_out_non_finite, "
      "params or fallback, which the library does not look for: it looks for needs, whole_model, leaves_out_nonfinite, "
      "parameters and fallbacks; see core/concepts.hpp");
}

template <scalar T, class Space>
constexpr void refuse_near_misses_of_space() {
  static_assert(
      (says_what_it_reaches<Space> || (!requires { &Space::reaches; } && !requires { &Space::is_reachable; })) &&
          (recombines_in_double<Space, T> || !requires(const Space& space) { for_recombination(space); }),
      "adasum: the space has a member reaches or is_reachable, or a function for_recombination(space), which the "
      "library does not look for: it looks for can_reach and for_recombining(space); see core/concepts.hpp");
}

template <class Comm>
constexpr void refuse_near_misses_of_communicator() {
  static_assert(
      (says_nodes<Comm> || !names_node<Comm>) &&
          (shared_memory_communicator<Comm> || !requires { &Comm::share_memory; }),
      "adasum: the communicator has a member node or share_memory, which the library does not look for: it looks for "
      "nodes and share; see core/concepts.hpp");
}

template <class Schedule>
constexpr void refuse_near_misses_of_schedule() {
  static_assert((says_use_of_shared_memory<Schedule> || !names_use_of_shared_memory<Schedule>) &&
                    (says_leaf_ranks<Schedule> || !names_leaf_rank<Schedule>) &&
                    (has_parameters<Schedule> || !names_params<Schedule>),
                "adasum: the schedule has a member use_shared_memory, leaf_rank or params, which the library does not "
                "look for: it looks for uses_shared_memory, leaf_ranks and parameters; see core/concepts.hpp");
}

}  // namespace adasum::detail
