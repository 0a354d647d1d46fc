// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "combinations.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "support/random_gradients.hpp"

namespace adasum::test {

namespace {

/// What stands for the rest, to save compiling (trials.hpp).
bool is_compiled(const combination& one) {
  const bool is_plan = one.call == call_of_ranks::plan_allreduce;
  const bool in_floats = one.type == element::of_float, serial = one.space == host_space::serial;
  if (!in_floats || !serial) return one.rule == "adasum" && is_plan && !one.by_node && (in_floats || serial);
  return (has_every_call(one.rule_name()) && !one.by_node) || is_plan;
}
/// Whether a program can be written so, and is compiled here.
bool can_be_tried(const combination& one, int ranks) {
  if (one.has_shard && (!takes_shard(one.call) || ranks % 2 != 0)) return false;
  if (one.not_finite && (one.by_node || (one.rule != "adasum" && one.rule != "mean"))) return false;
  return is_compiled(one);
}

const std::array every_choice{options{},
                              options{.check_agreement = false},
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

/// Each of the rules by each schedule.
std::vector<combination> by_schedules(std::span<const std::string_view> rules, int ranks) {
  std::vector<combination> all;
  for (const auto rule : rules)
    for_each_order([&](const auto* schedule, bool by_node, bool has_shard) {
      const combination one{
          .rule = rule, .schedule = schedule, .by_node = by_node, .has_shard = has_shard, .is_long = true};
      if (can_be_tried(one, ranks)) all.push_back(one);
    });
  return all;
}

}  // namespace

std::vector<combination> rules_by_schedules(int ranks) { return by_schedules(all_rules, ranks); }

std::vector<combination> schedules_of(int ranks) {
  constexpr std::array<std::string_view, 3> some{"adasum", "adacons", "multi_krum"};
  return by_schedules(some, ranks);
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
      add({.rule = "mean", .call = call, .choices = choice, .not_finite = true});
      add({.call = call, .choices = choice, .is_long = true});
    }
    for (const bool checked : {false, true})
      add({.call = call, .choices = {.check_agreement = checked}, .disagrees = true});
  });
  return all;
}

std::vector<combination> drawn_among(int ranks) {
  constexpr std::size_t count = 200;
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
