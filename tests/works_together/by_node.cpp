// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/exec/serial.hpp>

#include "erased_rule.hpp"
#include "trials.hpp"

namespace adasum::test {

trial_result try_by_node(const any_communicator& comm, const setting& where, const combination& one) {
  static thread_local kernel_calls seen;
  seen = {};
  const watched_space<serial_space> space(serial_space{}, seen);
  return visit_erased(rule_named(one.rule), [&]<class Rule, class Named>(const Rule& rule, const Named&) {
    const trial<float, Rule, Named> here(comm, where, one, rule);
    const auto order = here.by_pairs();
    return here.judge([&](const auto& mine) { return reduce<float, true>(space, comm, one, rule, order, mine); }, seen);
  });
}

}  // namespace adasum::test
