// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <concepts>
#include <variant>

#include <adasum/exec/serial.hpp>
#include <adasum/exec/threads.hpp>

#include "trials.hpp"

namespace adasum::test {

namespace {

template <scalar T, class Space, class Rule>
trial_result try_plan(const Space& base, const any_communicator& comm, const setting& where, const combination& one,
                      const Rule& rule) {
  static thread_local kernel_calls seen;
  seen = {};
  const watched_space<Space> space(base, seen);
  return trial<T, Rule>(comm, where, one, rule)
      .judge([&](const auto& mine) { return reduce<T, false>(space, comm, one, rule, *one.schedule, mine); }, seen);
}

/// One rule of each kind; in several threads the other scalars under rules::adasum alone (trials.cpp knows).
template <scalar T>
trial_result try_of_type(const any_communicator& comm, const setting& where, const combination& one) {
  static const threads_space two(2);
  const auto named = rule_named(one.rule);
  const auto with = [&](const auto& rule) {
    if constexpr (std::same_as<T, float>)
      return try_plan<T>(two, comm, where, one, rule);
    else
      return try_plan<T>(serial_space{}, comm, where, one, rule);
  };
  if (const auto* const rule = std::get_if<rules::adasum>(&named))
    return one.space == host_space::threads ? try_plan<T>(two, comm, where, one, *rule) : with(*rule);
  if (const auto* const rule = std::get_if<rules::adacons>(&named)) return with(*rule);
  return with(std::get<rules::any_gram_rule<true, true, true>>(named));
}

}  // namespace

trial_result try_in_other_types(const any_communicator& comm, const setting& where, const combination& one) {
  switch (one.type) {
    case element::of_double: return try_of_type<double>(comm, where, one);
    case element::of_half: return try_of_type<Eigen::half>(comm, where, one);
    case element::of_bfloat16: return try_of_type<Eigen::bfloat16>(comm, where, one);
    case element::of_float:
    case element::count: break;
  }
  return try_of_type<float>(comm, where, one);
}

}  // namespace adasum::test
