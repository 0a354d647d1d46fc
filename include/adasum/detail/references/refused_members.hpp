// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

#include "../../core/concepts.hpp"
#include "../../core/optional_members.hpp"
#include "../../core/scalar.hpp"
#include "../../core/stage.hpp"

/// Members that their author means to be optional ones of a concept and that the library would not ask for: those with other
/// parameters or another result, and those that the concepts once named. A type that has one does not compile. (Members that
/// are templates or overloaded are not seen here; testing.hpp's checks list what is taken.)
namespace adasum::detail {

// Whether a type has a member, as the page says it; those of rules and communicators are in core/optional_members.hpp.
template <class Space>
concept says_what_it_reaches = requires(const Space& space, const void* address) {
  { space.can_reach(address) } -> std::same_as<bool>;
};
template <class Memory>
concept tells_who_has_left = requires(const Memory& memory, std::size_t i) {
  { memory.has_left(i) } -> std::convertible_to<bool>;
};
template <class Memory>
concept makes_progress = requires(const Memory& memory) {
  memory.progress();
};
template <class Schedule>
concept says_use_of_shared_memory = requires(const Schedule& order, int size, const schedule_input& input) {
  { order.uses_shared_memory(size, input) } -> std::convertible_to<shared_memory_use>;
};
template <class Schedule>
concept says_leaf_ranks = requires(const Schedule& order, int size, const schedule_input& input) {
  { order.leaf_ranks(size, input) } -> std::convertible_to<std::vector<int>>;
};

template <scalar T, class Space>
constexpr void refuse_members_of_space() {
  static_assert(
      !requires { &Space::can_reach; } || says_what_it_reaches<Space>,
      "adasum: the space's member can_reach is not `bool can_reach(const void*) const`");
  static_assert(measures_in_double<Space, T> == mixes_in_double<Space, T>,
                "adasum: the space has one of measure_in_double and mix_in_double for these elements: write both, or "
                "delete both; see core/concepts.hpp");
  static_assert(
      !requires { &Space::arithmetic; } && !requires { Space::round_bytes; } &&
          !requires(const Space& space) { for_pairs(space); },
      "adasum: the space has a member arithmetic or round_bytes, or a function for_pairs(space), which are no longer "
      "asked for: its `name`, which need not be static, says how it rounds; see core/concepts.hpp");
}

template <class Rule>
constexpr void refuse_members_of_rule() {
  static_assert(
      !requires { &Rule::whole_model; } || says_whether_whole_model<Rule>,
      "adasum: the rule's member whole_model is not `bool whole_model() const`");
  static_assert(
      !requires { &Rule::degree; } || has_degree<Rule>, "adasum: the rule's member degree is not `int degree() const`");
  static_assert(
      !requires { &Rule::parameters; } || has_parameters<Rule>,
      "adasum: the rule's member parameters is not a const function that returns a range of doubles");
  static_assert(
      !requires { &Rule::fallbacks; } || counts_fallbacks<Rule>,
      "adasum: the rule's member fallbacks is not a `std::size_t`");
  static_assert(
      !requires { &Rule::leaves_out_nonfinite; } || says_whether_nonfinite<Rule>,
      "adasum: the rule's member leaves_out_nonfinite is not `static constexpr bool`");
  static_assert(
      !requires { Rule::needs_gram; } && !requires { Rule::needs_accurate_gram; } &&
          !requires { Rule::needs_distances; } && !requires { &Rule::chosen_name; } && !requires { Rule::left_fold; },
      "adasum: the rule has a member that is no longer asked for: needs_gram, needs_accurate_gram or needs_distances, "
      "for which there is `static constexpr adasum::inner_products needs`; chosen_name, since its `name` need not be "
      "static; or left_fold, since rules::adasum_linear alone is applied in the order of the gradients; see "
      "core/concepts.hpp");
}

template <class Memory>
constexpr void refuse_members_of_memory() {
  static_assert(
      !requires { &Memory::has_left; } || tells_who_has_left<Memory>,
      "adasum: the shared memory's member has_left is not `bool has_left(std::size_t) const`");
  static_assert(
      !requires { &Memory::progress; } || makes_progress<Memory>,
      "adasum: the shared memory's member progress is not `void progress() const`");
  static_assert(
      !requires { &Memory::timeout; } && !requires { Memory::most_looks; } &&
          !requires(const Memory& memory) { memory.alive(); } && !requires(const Memory& memory) { memory.rest(); },
      "adasum: the shared memory has a member that is no longer asked for: timeout, in place of which call "
      "comm.state().set_timeout(...); alive(), since of(i) must stay valid as long as the object exists; rest() or "
      "most_looks, since progress() is called while a rank waits, and may sleep; see core/concepts.hpp");
}

template <class Comm>
constexpr void refuse_members_of_communicator() {
  static_assert(
      !requires(const Comm& comm) { comm.state(); } || has_state<Comm>,
      "adasum: the communicator's member state is not `adasum::communicator_state& state() const`");
  static_assert(
      !requires { &Comm::nodes; } || says_nodes<Comm>,
      "adasum: the communicator's member nodes is not a const function that returns a range of int");
  static_assert(
      !requires { &Comm::reduction_in_flight; } && !requires { &Comm::kept_plans; } && !requires { &Comm::gave_up; } &&
          !requires { &Comm::require_usable; } && !requires { &Comm::all_share_memory; },
      "adasum: the communicator has a member that is no longer asked for: reduction_in_flight, kept_plans, gave_up or "
      "require_usable, for which it offers `adasum::communicator_state& state() const`; or all_share_memory, since "
      "nodes() says it; see core/concepts.hpp");
}

template <class Schedule>
constexpr void refuse_members_of_schedule() {
  static_assert(
      !requires { &Schedule::uses_shared_memory; } || says_use_of_shared_memory<Schedule>,
      "adasum: the schedule's member uses_shared_memory is not "
      "`adasum::shared_memory_use uses_shared_memory(int, const adasum::schedule_input&) const`");
  static_assert(
      !requires { &Schedule::leaf_ranks; } || says_leaf_ranks<Schedule>,
      "adasum: the schedule's member leaf_ranks is not "
      "`std::vector<int> leaf_ranks(int, const adasum::schedule_input&) const`");
  static_assert(
      !requires { &Schedule::parameters; } || has_parameters<Schedule>,
      "adasum: the schedule's member parameters is not a const function that returns a range of doubles");
  static_assert(
      (!requires { &Schedule::chosen_name; } || chooses_schedule<Schedule>) &&
          (!requires(const Schedule& order) { requires rule<std::remove_cvref_t<decltype(order.inner)>>; } ||
           has_inner_rule<Schedule>),
      "adasum: the schedule has a member that is no longer asked for: chosen_name, since reports show its `name`, "
      "which need not be static; or the rule `inner`, since schedules::hierarchical alone brings one; see "
      "core/concepts.hpp");
}

}  // namespace adasum::detail
