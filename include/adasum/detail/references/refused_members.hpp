// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "../../core/concepts.hpp"
#include "../../core/optional_members.hpp"
#include "../../core/scalar.hpp"
#include "../../core/stage.hpp"

/// Members that their author means to be optional ones of a concept and that the library would not ask for: those with other
/// parameters or another result, and those that the concepts once named. A type that has one does not compile. (Not seen
/// here: members that are overloaded, and most that are templates. testing.hpp's checks list what is taken.)
namespace adasum::detail {

// Whether a type has a member, as the page says it; those of rules and communicators are in core/optional_members.hpp.
template <class Space>
concept says_what_it_reaches = requires(const Space& space, const void* address) {
  { space.can_reach(address) } -> std::same_as<bool>;
};
template <class Comm>
concept reserves_messages = requires(const Comm& comm, std::size_t count) { comm.reserve(count, count); };
template <class Comm>
concept reserves_pending =
    requires(const Comm& comm, std::size_t count, typename Comm::pending& held) { comm.reserve(count, count, held); };
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

// Whether a type has a member of that name, even as a template of what it is usually a template of.
template <class Space, class T>
concept names_measure_in_double =
    requires { &Space::measure_in_double; } || requires { &Space::template measure_in_double<T>; };
template <class Space, class T>
concept names_mix_in_double = requires { &Space::mix_in_double; } || requires { &Space::template mix_in_double<T>; } ||
                              requires { &Space::template mix_in_double<T, T>; };
template <class Comm, class Space>
concept names_post = requires { &Comm::post; } || requires { &Comm::template post<Space>; };
template <class Comm>
concept names_state = requires { &Comm::state; } || requires(Comm& comm) { comm.state(); };

// Whether for_recombining(space) can be called, and gives what the page says. A member of that name is none.
template <class Space>
concept names_space_for_recombining =
    requires { &Space::for_recombining; } || requires(Space& space) { for_recombining(space); };
template <class Space, class T>
concept offers_space_for_recombining =
    recombines_in_double<Space, T> && requires(const Space& space, T* narrow, double* wide, std::size_t count) {
      for_recombining(space).copy(static_cast<const T*>(narrow), wide, count);
      for_recombining(space).copy(static_cast<const double*>(wide), narrow, count);
    };

/// For templates that take any rule.
struct some_rule {
  static constexpr std::string_view name = "some";
  pair_weights operator()(const pair_gram&) const;
};

template <scalar T, class Space>
constexpr void refuse_members_of_space() {
  static_assert(
      !requires { &Space::can_reach; } || says_what_it_reaches<Space>,
      "adasum: the space's member can_reach is not `bool can_reach(const void*) const`");
  static_assert(measures_in_double<Space, T> == mixes_in_double<Space, T>,
                "adasum: the space has one of measure_in_double and mix_in_double for these elements: write both, or "
                "delete both; see core/concepts.hpp");
  // Those that are no templates may be for other elements than T.
  static_assert((!names_measure_in_double<Space, T> && !names_mix_in_double<Space, T>) ||
                    measures_in_double<Space, T> || measures_in_double<Space, float> ||
                    measures_in_double<Space, double>,
                "adasum: the space's members measure_in_double and mix_in_double are not "
                "`void measure_in_double(const slice&, std::span<const T* const>, double* gram) const` and "
                "`void mix_in_double(const slice&, std::span<const T* const>, const double* weights, T* out) const`");
  static_assert(
      std::same_as<T, double> || !names_space_for_recombining<Space> || offers_space_for_recombining<Space, T>,
      "adasum: the space's for_recombining is not a function `for_recombining(const my_space&)` that returns a "
      "space for double, which also copies from these elements to double and back");
  static_assert(
      device_space<Space> ||
          !requires(const Space& space, const void* from, void* to, std::size_t bytes) {
            space.upload(from, to, bytes);
            space.download(from, to, bytes);
          },
      "adasum: the space has some members of a device_space, but not all, or others than that concept states: the host "
      "would read and write its memory; see core/concepts.hpp");
  static_assert(
      !requires { &Space::arithmetic; } && !requires { Space::round_bytes; } &&
          !requires(const Space& space) { for_pairs(space); },
      "adasum: the space has a member arithmetic or round_bytes, or a function for_pairs(space), which are no longer "
      "asked for: its `name`, which need not be static, says how it rounds; see core/concepts.hpp");
  static_assert(
      !requires { &Space::combine_async; } &&
          !requires(const Space& space, const slice& part, std::span<const T* const> vectors, T* out) {
            space.combine_async(some_rule(), part, vectors, out);
          },
      "adasum: the space has a member combine_async, which is enqueue_combine now; see core/concepts.hpp");
}

template <class Rule>
constexpr void refuse_members_of_rule() {
  static_assert(
      !requires { &Rule::needs; } || says_what_it_needs<Rule>,
      "adasum: the rule's member needs is not `static constexpr adasum::inner_products`");
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
          !requires { Rule::needs_distances; } && !requires { &Rule::chosen_name; } && !requires { Rule::left_fold; } &&
          !requires { typename std::bool_constant<Rule::linear_order>; },
      "adasum: the rule has a member that is no longer asked for: needs_gram, needs_accurate_gram or needs_distances, "
      "for which there is `static constexpr adasum::inner_products needs`; chosen_name, since its `name` need not be "
      "static; or left_fold or linear_order, since rules::adasum_linear alone is applied in the order of the "
      "gradients; see core/concepts.hpp");
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
      "comm.state().set_timeout(...); alive(), since of(i) must stay valid as long as the object exists; or rest() or "
      "most_looks, since progress() is called while a rank waits, and may sleep; see core/concepts.hpp");
}

template <class Comm>
constexpr void refuse_members_of_communicator() {
  static_assert(!names_state<Comm> || has_state<Comm>,
                "adasum: the communicator's member state is not `adasum::communicator_state& state() const`");
  static_assert(
      !requires { &Comm::nodes; } || says_nodes<Comm>,
      "adasum: the communicator's member nodes is not a const function that returns a range of int");
  static_assert(
      !requires { &Comm::reserve; } || reserves_messages<Comm> || reserves_pending<Comm>,
      "adasum: the communicator's member reserve is neither `void reserve(std::size_t, std::size_t) const` nor "
      "`void reserve(std::size_t, std::size_t, pending&) const`");
  static_assert(
      !requires { &Comm::share; } || shared_memory_communicator<Comm>,
      "adasum: the communicator's member share is not a function share(std::size_t) const that returns a "
      "shared_window; see core/concepts.hpp");
  static_assert(
      !requires { &Comm::reduction_in_flight; } && !requires { &Comm::kept_plans; } && !requires { &Comm::gave_up; } &&
          !requires { &Comm::require_usable; } && !requires { &Comm::all_share_memory; } &&
          !requires { &Comm::without_kept_plans; },
      "adasum: the communicator has a member that is no longer asked for: reduction_in_flight, kept_plans, "
      "without_kept_plans, gave_up or require_usable, for which it offers `adasum::communicator_state& state() const`; "
      "or all_share_memory, since nodes() says it; see core/concepts.hpp");
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
  static_assert(
      !requires { &Schedule::stages_in_place; } && !requires { &Schedule::shared_memory_only; } &&
          !requires { typename std::bool_constant<Schedule::all_at_once>; },
      "adasum: the schedule has a member that is no longer asked for: stages_in_place or shared_memory_only, for which "
      "there is uses_shared_memory; or all_at_once, for which there is supports_gram_rules; see core/concepts.hpp");
}

}  // namespace adasum::detail
