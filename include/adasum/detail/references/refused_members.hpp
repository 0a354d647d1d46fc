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

template <scalar T, class Space>
constexpr void refuse_members_of_space() {
  static_assert(
      !requires { &Space::can_reach; } ||
          requires(const Space& space, const void* address) {
            { space.can_reach(address) } -> std::same_as<bool>;
          },
      "adasum: the space's member can_reach is not `bool can_reach(const void*) const`");
  static_assert(
      !requires { &Space::arithmetic; },
      "adasum: the space has a member arithmetic(), which is no longer asked for: its `name` says how it rounds, and need "
      "not be static: `std::string name`; see core/concepts.hpp");
  static_assert(measures_in_double<Space, T> == mixes_in_double<Space, T>,
                "adasum: the space has one of measure_in_double and mix_in_double for these elements: write both, or delete "
                "both; see core/concepts.hpp");
  static_assert(
      !requires { Space::round_bytes; } && !requires(const Space& space) { for_pairs(space); },
      "adasum: the space has a member round_bytes or a function for_pairs(space), which are no longer asked for: the "
      "library's "
      "own spaces alone work in rounds, and have kernels for pairs; see core/concepts.hpp");
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
      !requires { &Rule::chosen_name; },
      "adasum: the rule has a member chosen_name(), which is no longer asked for: its `name` need not be static: "
      "`std::string_view name`; see core/concepts.hpp");
  static_assert(
      !requires { &Rule::fallbacks; } || counts_fallbacks<Rule>,
      "adasum: the rule's member fallbacks is not a `std::size_t`");
  static_assert(
      !requires { &Rule::leaves_out_nonfinite; } || says_whether_nonfinite<Rule>,
      "adasum: the rule's member leaves_out_nonfinite is not `static constexpr bool`");
  static_assert(
      !requires { Rule::needs_gram; } && !requires { Rule::needs_accurate_gram; } &&
          !requires { Rule::needs_distances; },
      "adasum: the rule has a member needs_gram, needs_accurate_gram or needs_distances, which is now `static "
      "constexpr "
      "adasum::inner_products needs`: none, accurate or distances; see core/concepts.hpp");
  static_assert(
      !requires { Rule::left_fold; },
      "adasum: the rule has a member left_fold, which is no longer asked for: rules::adasum_linear alone is applied in "
      "the "
      "order of the gradients; write a rule of n vectors; see core/concepts.hpp");
}

template <class Memory>
constexpr void refuse_members_of_memory() {
  static_assert(
      !requires { &Memory::has_left; } ||
          requires(const Memory& memory, std::size_t i) {
            { memory.has_left(i) } -> std::convertible_to<bool>;
          },
      "adasum: the shared memory's member has_left is not `bool has_left(std::size_t) const`");
  static_assert(
      !requires { &Memory::timeout; },
      "adasum: the shared memory has a member timeout, which is now that of the communicator's state: call "
      "comm.state().set_timeout(...); see core/concepts.hpp");
  static_assert(
      !requires { &Memory::progress; } || requires(const Memory& memory) { memory.progress(); },
      "adasum: the shared memory's member progress is not `void progress() const`");
  static_assert(
      !requires(const Memory& memory) { memory.alive(); },
      "adasum: the shared memory has a member alive(), which is no longer asked for: of(i) must stay valid as long as "
      "the "
      "object exists; see core/concepts.hpp");
  static_assert(
      !requires(const Memory& memory) { memory.rest(); } && !requires { Memory::most_looks; },
      "adasum: the shared memory has a member rest() or most_looks, which is no longer asked for: progress() is called "
      "while "
      "a rank waits, and may sleep; see core/concepts.hpp");
}

template <class Comm>
constexpr void refuse_members_of_communicator() {
  static_assert(
      !requires(const Comm& comm) { comm.state(); } || has_state<Comm>,
      "adasum: the communicator's member state is not `adasum::communicator_state& state() const`");
  static_assert(
      !requires { &Comm::reduction_in_flight; } && !requires { &Comm::kept_plans; } && !requires { &Comm::gave_up; } &&
          !requires { &Comm::require_usable; },
      "adasum: the communicator has a member reduction_in_flight, kept_plans, gave_up or require_usable, which are now "
      "members of one object: offer `adasum::communicator_state& state() const`; see core/concepts.hpp");
  static_assert(
      !requires { &Comm::nodes; } || says_nodes<Comm>,
      "adasum: the communicator's member nodes is not a const function that returns a range of int");
  static_assert(
      !requires { &Comm::all_share_memory; },
      "adasum: the communicator has a member all_share_memory, which is no longer asked for: all ranks share memory if "
      "nodes() says one node for all of them, or is absent; see core/concepts.hpp");
}

template <class Schedule>
constexpr void refuse_members_of_schedule() {
  static_assert(
      !requires { &Schedule::uses_shared_memory; } ||
          requires(const Schedule& order, int size, const schedule_input& input) {
            { order.uses_shared_memory(size, input) } -> std::convertible_to<shared_memory_use>;
          },
      "adasum: the schedule's member uses_shared_memory is not "
      "`adasum::shared_memory_use uses_shared_memory(int, const adasum::schedule_input&) const`");
  static_assert(
      !requires { &Schedule::chosen_name; } || chooses_schedule<Schedule>,
      "adasum: the schedule has a member chosen_name, which is no longer asked for: reports show its `name`, which need not be "
      "static: `std::string_view name`; see core/concepts.hpp");
  static_assert(
      !requires(const Schedule& order) { requires rule<std::remove_cvref_t<decltype(order.inner)>>; } ||
          has_inner_rule<Schedule>,
      "adasum: the schedule has a rule as its member `inner`, which is no longer asked for: schedules::hierarchical alone "
      "brings a rule for stages inside nodes; see core/concepts.hpp");
  static_assert(
      !requires { &Schedule::leaf_ranks; } ||
          requires(const Schedule& order, int size, const schedule_input& input) {
            { order.leaf_ranks(size, input) } -> std::convertible_to<std::vector<int>>;
          },
      "adasum: the schedule's member leaf_ranks is not "
      "`std::vector<int> leaf_ranks(int, const adasum::schedule_input&) const`");
  static_assert(
      !requires { &Schedule::parameters; } || has_parameters<Schedule>,
      "adasum: the schedule's member parameters is not a const function that returns a range of doubles");
}

}  // namespace adasum::detail
