// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/exec/serial.hpp>
#include <adasum/exec/threads.hpp>
#include <adasum/rules/adasum.hpp>
#include <adasum/rules/adasum_linear.hpp>

#include "erased_rule.hpp"
#include "trials.hpp"

namespace adasum::test {

namespace {

template <scalar T, class Space, class Rule>
trial_result try_plan(const Space& space, const any_communicator& comm, const setting& where, const combination& one,
                      const Rule& rule) {
  return trial<T, Rule>(comm, where, one, rule).judge([&](const auto& mine) {
    return reduce<T, false>(space, comm, one, rule, *one.schedule, mine);
  });
}

}  // namespace

trial_result try_plan_by_node(const any_communicator& comm, const setting& where, const combination& one) {
  return visit_erased(rule_named(one.rule), [&]<class Rule, class Named>(const Rule& rule, const Named&) {
    const trial<float, Rule, Named> here(comm, where, one, rule);
    const auto order = here.by_pairs();
    return here.judge(
        [&](const auto& mine) { return reduce<float, false>(serial_space{}, comm, one, rule, order, mine); });
  });
}

trial_result try_plan_of_floats(const any_communicator& comm, const setting& where, const combination& one) {
  if (one.rule_name() != rules::adasum_linear::name) return {trial_result::kind::wrong, "is compiled with every call"};
  return try_plan<float>(serial_space{}, comm, where, one, rules::adasum_linear{});
}

trial_result try_plan_of_other_types(const any_communicator& comm, const setting& where, const combination& one) {
  const rules::adasum rule;
  const serial_space exec;
  switch (one.type) {
    case element::of_double: return try_plan<double>(exec, comm, where, one, rule);
    case element::of_half: return try_plan<Eigen::half>(exec, comm, where, one, rule);
    case element::of_bfloat16: return try_plan<Eigen::bfloat16>(exec, comm, where, one, rule);
    case element::of_float:
    case element::count: break;
  }
  static const threads_space two(2);
  return try_plan<float>(two, comm, where, one, rule);
}

}  // namespace adasum::test
