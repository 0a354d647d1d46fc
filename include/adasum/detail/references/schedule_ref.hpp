// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <concepts>
#include <string_view>
#include <type_traits>
#include <vector>

#include "../../core/concepts.hpp"
#include "../../core/optional_members.hpp"
#include "../../core/stage.hpp"
#include "erased.hpp"
#include "refused_members.hpp"
#include "rule_ref.hpp"

/// A schedule, as the engine sees it: a table of functions. The engine is no template.
namespace adasum::detail {

/// For schedules without an inner rule.
struct no_inner_rule {
  static constexpr std::string_view name = "none";
  ADASUM_HOST_DEVICE pair_weights operator()(const pair_gram&) const noexcept { return {1, 1}; }
};

/// The rule that a schedule brings for its inner stages.
template <class Schedule>
auto copy_of_inner_rule(const Schedule& schedule) {
  if constexpr (has_inner_rule<Schedule>)
    return inner_rule_of(own_type{}, schedule);
  else
    return no_inner_rule{};
}

/// The members of a schedule (core/concepts.hpp). What is optional there may be null here.
struct schedule_table {
  std::string_view (*name)(const void* schedule);
  std::vector<stage> (*stages)(const void* schedule, int rank, int size, const schedule_input& input);
  shared_memory_use (*uses_shared_memory)(const void* schedule, int size, const schedule_input& input);
  std::string_view (*chosen_name)(const void* schedule, int size, const schedule_input& input);
  std::vector<int> (*leaf_ranks)(const void* schedule, int size, const schedule_input& input);
  std::vector<double> (*parameters)(const void* schedule);
  rule_ref (*inner)(const void* schedule);
  bool has_inner;
  bool (*equal)(const void* a, const void* b);
  owned_object (*copy)(const void* schedule);
};

/// A schedule of the caller's. Whoever holds it sees to it that the schedule lives.
class schedule_ref {
 public:
  schedule_ref(const schedule_table& table, const void* schedule) : table_(&table), schedule_(schedule) {}
  template <class Schedule>
  requires(!std::is_same_v<Schedule, schedule_ref> && schedule<Schedule>) schedule_ref(const Schedule& order);

  std::string_view name() const { return table_->name(schedule_); }
  std::vector<stage> stages(int rank, int size, const schedule_input& input) const {
    return table_->stages(schedule_, rank, size, input);
  }
  shared_memory_use uses_shared_memory(int size, const schedule_input& input) const {
    return table_->uses_shared_memory != nullptr ? table_->uses_shared_memory(schedule_, size, input)
                                                 : shared_memory_use::none;
  }
  /// The name of the schedule that runs. @param asked  what it chooses by
  std::string_view chosen_name(int size, const schedule_input& asked) const {
    return table_->chosen_name != nullptr ? table_->chosen_name(schedule_, size, asked) : name();
  }
  std::vector<int> leaf_ranks(int size, const schedule_input& input) const {
    return table_->leaf_ranks != nullptr ? table_->leaf_ranks(schedule_, size, input) : std::vector<int>();
  }
  std::vector<double> parameters() const { return table_->parameters(schedule_); }
  bool has_inner_rule() const { return table_->has_inner; }
  /// The rule of inner stages; no_inner_rule if it has none.
  rule_ref inner_rule() const { return table_->inner(schedule_); }
  /// A copy of the schedule, for whoever outlives it, and the reference to that.
  owned_object copy() const { return table_->copy(schedule_); }
  schedule_ref to(const owned_object& copied) const { return {*table_, copied.get()}; }
  /// Whether both do the same.
  bool equals(const schedule_ref& other) const {
    return table_ == other.table_ && table_->equal(schedule_, other.schedule_);
  }

 private:
  const schedule_table* table_;
  const void* schedule_;
};

// ── from the concept to the table ──

template <schedule Schedule>
struct functions_of_schedule {
  template <class Object>  // see functions_of_space
  static const Schedule& of(const Object* schedule) {
    return *static_cast<const Schedule*>(schedule);
  }

  static rule_ref inner(const void* schedule) {
    if constexpr (has_inner_rule<Schedule>) {
      return {inner_rule_of(own_type{}, of(schedule))};
    } else {
      static no_inner_rule none;
      return {none};
    }
  }
};

/// Neither const, so that no linker takes the tables of two types for one, since plans are told apart by them; nor inline, so
/// that they can be compiled elsewhere.
template <schedule Schedule, class Functions = functions_of_schedule<Schedule>>
schedule_table table_of_schedule{
    .name = [](const void* schedule) -> std::string_view { return Functions::of(schedule).name; },
    .stages = [](const void* schedule, int rank, int size,
                 const schedule_input& input) { return Functions::of(schedule).stages(rank, size, input); },
    .uses_shared_memory =
        entry_if<says_use_of_shared_memory<Schedule>, decltype(schedule_table::uses_shared_memory)>(
            [](const auto* schedule, int size, const schedule_input& input) -> shared_memory_use {
              return Functions::of(schedule).uses_shared_memory(size, input);
            }),
    .chosen_name = entry_if<chooses_schedule<Schedule>, decltype(schedule_table::chosen_name)>(
        [](const auto* schedule, int size, const schedule_input& input) -> std::string_view {
          return chosen_name_of(own_type{}, Functions::of(schedule), size, input);
        }),
    .leaf_ranks = entry_if<says_leaf_ranks<Schedule>, decltype(schedule_table::leaf_ranks)>(
        [](const auto* schedule, int size, const schedule_input& input) -> std::vector<int> {
          return Functions::of(schedule).leaf_ranks(size, input);
        }),
    .parameters = [](const void* schedule) { return adasum::parameters_of(Functions::of(schedule)); },
    .inner = &Functions::inner,
    .has_inner = has_inner_rule<Schedule>,
    .equal = [](const void* a, const void* b) { return do_the_same(Functions::of(a), Functions::of(b)); },
    .copy = [](const void* schedule) { return own(Schedule(Functions::of(schedule))); }};

template <class Schedule>
requires(!std::is_same_v<Schedule, schedule_ref> &&
         schedule<Schedule>) schedule_ref::schedule_ref(const Schedule& order)
    : schedule_ref(table_of_schedule<Schedule>, &order) {
  refuse_members_of_schedule<Schedule>();
}

}  // namespace adasum::detail
