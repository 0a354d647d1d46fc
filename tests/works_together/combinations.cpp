// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "combinations.hpp"

#include <array>
#include <cstdint>

#include "support/random_gradients.hpp"

namespace adasum::test {

namespace {

/// Other scalars and spaces are compiled for plans under a rule of each kind (in_other_types.cpp), to save time.
bool is_compiled(const combination& one) {
  const bool in_floats = one.type == element::of_float, serial = one.space == host_space::serial;
  if (in_floats && serial) return true;
  if (one.by_node || one.call != call_of_ranks::plan_allreduce) return false;
  const bool stands_for_others = one.rule_name() == "adacons" || one.rule_name() == "multi_krum";
  return one.rule == "adasum" || ((in_floats || serial) && stands_for_others);
}
/// Whether a program can be written so, and is compiled here.
bool can_be_tried(const combination& one, int ranks) {
  if (one.has_shard && (!takes_shard(one.call) || ranks % 2 != 0)) return false;
  return is_compiled(one) && !(one.by_node && one.not_finite);
}

const std::array every_choice{options{},
                              options{.check_agreement = false},
                              options{.measure = measuring::when_needed},
                              options{.nonfinite = nonfinite_policy::exclude},
                              options{.nonfinite = nonfinite_policy::raise},
                              options{.wire = wire_format::bfloat16},
                              options{.wire = wire_format::binary16},
                              options{.keep_plan = false}};
constexpr std::array every_element{element::of_float, element::of_double, element::of_half, element::of_bfloat16};

template <class Visitor>
void for_each_call(const Visitor& visit) {
  for (int call = 0; call < static_cast<int>(call_of_ranks::count); ++call) visit(static_cast<call_of_ranks>(call));
}
/// visit(schedule, by_node, has_shard)
template <class Visitor>
void for_each_order(const Visitor& visit) {
  for (const auto& schedule : all_schedules())
    for (const bool by_node : {false, true})
      for (const bool has_shard : {false, true}) visit(&schedule, by_node, has_shard);
}

}  // namespace

std::vector<combination> rules_by_schedules(int ranks) {
  std::vector<combination> all;
  for (const auto rule : all_rules)
    for_each_order([&](const auto* schedule, bool by_node, bool has_shard) {
      const combination one{
          .rule = rule, .schedule = schedule, .by_node = by_node, .has_shard = has_shard, .is_long = true};
      if (can_be_tried(one, ranks)) all.push_back(one);
    });
  return all;
}

std::vector<combination> other_pairs(int ranks) {
  std::vector<combination> all;
  const auto add = [&](const combination& one) {
    if (can_be_tried(one, ranks)) all.push_back(one);
  };
  for (const auto rule : all_rules) {
    for (const bool not_finite : {false, true}) {
      for_each_call([&](auto call) { add({.rule = rule, .call = call, .not_finite = not_finite}); });
      for (const auto& choice : every_choice) add({.rule = rule, .choices = choice, .not_finite = not_finite});
    }
    add({.rule = rule, .call = call_of_ranks::combine_allreduce, .is_long = true});
    add({.rule = rule, .schedule = &all_schedules()[1], .choices = {.wire = wire_format::bfloat16}, .is_long = true});
    for (const auto type : every_element)
      for (const auto space : {host_space::serial, host_space::threads})
        for (const auto& choice : every_choice) add({.rule = rule, .type = type, .space = space, .choices = choice});
  }
  for_each_order([&](const auto* schedule, bool by_node, bool has_shard) {
    for_each_call([&](auto call) {
      add({.schedule = schedule, .by_node = by_node, .call = call, .has_shard = has_shard});
    });
    for (const auto& choice : every_choice)
      add({.schedule = schedule, .by_node = by_node, .choices = choice, .has_shard = has_shard, .is_long = true});
  });
  for_each_call([&](auto call) {
    for (const auto& choice : every_choice) {
      add({.schedule = &all_schedules()[1], .call = call, .choices = choice, .is_long = true});
      add({.rule = "sum", .call = call, .choices = choice, .not_finite = true});
    }
    for (const bool checked : {false, true})
      add({.call = call, .choices = {.check_agreement = checked}, .disagrees = true});
  });
  return all;
}

std::vector<combination> drawn_among(int ranks, std::size_t count) {
  uniform_numbers uniform(static_cast<std::uint64_t>(ranks));
  std::vector<combination> all;
  while (all.size() < count) {
    combination one;
    one.rule = all_rules[uniform.below(all_rules.size())];
    one.schedule = &all_schedules()[uniform.below(all_schedules().size())];
    one.by_node = uniform.below(5) == 0;
    one.call = static_cast<call_of_ranks>(uniform.below(static_cast<std::size_t>(call_of_ranks::count)));
    if (uniform.below(3) == 0) {
      one.type = every_element[uniform.below(every_element.size())];
      one.space = static_cast<host_space>(uniform.below(2));
    }
    one.choices.check_agreement = uniform.below(2) == 0;
    one.choices.measure = uniform.below(4) == 0 ? measuring::when_needed : measuring::always;
    one.choices.nonfinite = static_cast<nonfinite_policy>(uniform.below(3));
    one.choices.wire = static_cast<wire_format>(uniform.below(2) * uniform.below(3));
    one.choices.keep_plan = uniform.below(3) > 0;
    one.has_shard = uniform.below(4) == 0;
    one.not_finite = uniform.below(4) == 0;
    one.is_long = uniform.below(2) == 0;
    if (can_be_tried(one, ranks)) all.push_back(one);
  }
  return all;
}

}  // namespace adasum::test
