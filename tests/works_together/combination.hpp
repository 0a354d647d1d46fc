// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cstdlib>
#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <adasum/core/named_values.hpp>
#include <adasum/core/options.hpp>
#include <adasum/schedules/all_to_all.hpp>
#include <adasum/schedules/automatic.hpp>
#include <adasum/schedules/recursive_doubling.hpp>
#include <adasum/schedules/recursive_halving.hpp>
#include <adasum/schedules/shared_memory.hpp>

#include "support/forwarded_schedule.hpp"

/// One reduction among ranks: a value of each of the things that a caller chooses.
namespace adasum::test {

/// One of the library's schedules.
struct chosen_schedule : forwarded_schedule<chosen_schedule> {
  static constexpr std::string_view name = "chosen_schedule";
  std::string_view text;  ///< as a program writes it
  std::variant<schedules::automatic, schedules::recursive_doubling, schedules::recursive_halving, schedules::all_to_all,
               schedules::shared_memory>
      order;

  chosen_schedule(std::string_view t, decltype(order) o) : text(t), order(o) {}
  template <class Visitor>
  auto visit(Visitor&& visitor) const {
    return std::visit(visitor, order);
  }
  std::vector<double> parameters() const { return {static_cast<double>(order.index())}; }
  friend bool operator==(const chosen_schedule& a, const chosen_schedule& b) { return a.text == b.text; }
};

inline const std::vector<chosen_schedule>& all_schedules() {
  static const std::vector<chosen_schedule> all{
      {"automatic", schedules::automatic{}},
      {"automatic{.in_place = false}", schedules::automatic{.in_place = false}},
      {"automatic{.follows_nodes = false}", schedules::automatic{.follows_nodes = false}},
      {"recursive_doubling", schedules::recursive_doubling{}},
      {"recursive_doubling{.radix = 4}", schedules::recursive_doubling{.radix = 4}},
      {"recursive_halving", schedules::recursive_halving{}},
      {"recursive_halving{.radix = 4}", schedules::recursive_halving{.radix = 4}},
      {"recursive_halving{.most_parts = 2}", schedules::recursive_halving{.most_parts = 2}},
      {"all_to_all", schedules::all_to_all{}},
      {"shared_memory", schedules::shared_memory{}},
      {"shared_memory{.radix = 2}", schedules::shared_memory{.radix = 2}},
  };
  return all;
}

/// Each in the least that it needs. Those that are named twice have parameters by which another branch is taken.
inline constexpr std::array<std::string_view, 24> all_rules{
    "adasum",
    "adasum_linear",
    "sum",
    "mean",
    "unit_mean",
    "adacons",
    "adacons:per_segment=yes",
    "multi_krum",
    "geometric_median",
    "centred_clipping",
    "gradient_agreement_filtering",
    "pcgrad",
    "gradvac",
    "nearest_neighbour_mixing:byzantine=1,rule=geometric_median",
    "min_norm",
    "imtl_g",
    "aligned_mtl",
    "upgrad",
    "dualproj",
    "conflict_free",
    "cagrad",
    "nash_mtl",
    "fairgrad",
    "multi_krum:per_segment=yes"};

/// Whether it is among the rules for which every call is compiled. The others stand beside these.
constexpr bool has_every_call(std::string_view rule_name) { return rule_name != "adasum_linear"; }

enum class call_of_ranks {
  combine_allreduce,
  plan_allreduce,
  start,
  buffer,
  combine_reduce_scatter,
  plan_reduce_scatter,
  plan_bucketed,
  delta_allreduce,
  count
};
/// As a program writes it.
constexpr std::string_view to_string(call_of_ranks call) {
  constexpr std::array<std::string_view, static_cast<std::size_t>(call_of_ranks::count)> names{
      "combine_allreduce",      "plan_allreduce",      "start, test, wait", "plan.buffer",
      "combine_reduce_scatter", "plan_reduce_scatter", "plan_bucketed",     "delta_allreduce"};
  return names[static_cast<std::size_t>(call)];
}
/// Whether each rank gets all of the result.
constexpr bool gives_all(call_of_ranks call) {
  using enum call_of_ranks;
  return call != combine_reduce_scatter && call != plan_reduce_scatter;
}
/// Whether there is a shard among its arguments.
constexpr bool takes_shard(call_of_ranks call) {
  using enum call_of_ranks;
  return call == combine_allreduce || call == plan_allreduce || call == start || call == buffer ||
         call == delta_allreduce;
}

enum class element { of_float, of_double, of_half, of_bfloat16, count };
constexpr std::string_view to_string(element type) {
  constexpr std::array<std::string_view, static_cast<std::size_t>(element::count)> names{"float", "double", "binary16",
                                                                                         "bfloat16"};
  return names[static_cast<std::size_t>(type)];
}

enum class host_space { serial, threads };
constexpr std::string_view to_string(host_space space) {
  return space == host_space::serial ? "serial_space" : "threads_space";
}

struct combination {
  std::string_view rule = all_rules.front();
  const chosen_schedule* schedule = &all_schedules().front();
  bool by_node = false;  ///< hierarchical, with the mean in pairs of ranks and the schedule across these
  call_of_ranks call = call_of_ranks::plan_allreduce;
  element type = element::of_float;
  host_space space = host_space::serial;
  options choices{};
  bool has_shard = false;   ///< two ranks have a gradient together
  bool not_finite = false;  ///< the first gradient holds Inf
  bool disagrees = false;   ///< rank 1 has other segments
  bool is_long = false;

  std::string_view rule_name() const { return rule.substr(0, rule.find(':')); }
  std::string schedule_name() const {
    const auto own = std::string(schedule->text);
    return by_node ? "hierarchical, and across the nodes " + own : own;
  }
};

inline std::string_view to_string(nonfinite_policy policy) {
  return policy == nonfinite_policy::propagate ? "propagate"
         : policy == nonfinite_policy::exclude ? "exclude"
                                               : "raise";
}

/// What the text of a combination must contain for it to be tried: to look at one that is wrong.
inline std::string_view wanted_combinations() {
  const char* const wanted = std::getenv("ADASUM_COMBINATION");
  return wanted != nullptr ? wanted : "";
}

/// Its name, in messages.
inline std::string to_text(const combination& one) {
  std::string text;
  const auto add = [&](std::string_view word) { (text += text.empty() ? "" : " · ") += word; };
  add(one.rule);
  add(one.schedule_name());
  add(to_string(one.call));
  add(to_string(one.type));
  add(to_string(one.space));
  if (one.choices.check_agreement) add("check_agreement");
  if (one.choices.measure == measuring::when_needed) add("when_needed");
  add(to_string(one.choices.nonfinite));
  if (one.choices.wire != wire_format::same) add(to_string(one.choices.wire));
  if (!one.choices.keep_plan) add("no plan kept");
  if (one.has_shard) add("shards");
  if (one.not_finite) add("Inf");
  if (one.disagrees) add("other segments on rank 1");
  if (one.is_long) add("long");
  return text;
}

}  // namespace adasum::test
