// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <variant>

#include <adasum/exec/serial.hpp>

#include "trials.hpp"

namespace adasum::test {

/// Every rule, every call.
trial_result try_in_floats(const any_communicator& comm, const setting& where, const combination& one) {
  static thread_local kernel_calls seen;  // plans that are kept refer to it
  seen = {};
  const watched_space<serial_space> space(serial_space{}, seen);
  const auto named = rule_named(one.rule);
  return std::visit(
      [&](const auto& rule) {
        return trial<float, std::remove_cvref_t<decltype(rule)>>(comm, where, one, rule)
            .judge([&](const auto& mine) { return reduce<float, true>(space, comm, one, rule, *one.schedule, mine); }, seen);
      },
      named);
}

}  // namespace adasum::test
