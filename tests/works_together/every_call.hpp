// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <adasum/exec/serial.hpp>

#include "trials.hpp"

namespace adasum::test {

/// A combination of floats in serial_space, by any call.
template <class Rule>
trial_result try_every_call(const any_communicator& comm, const setting& where, const combination& one, const Rule& rule) {
  return trial<float, Rule>(comm, where, one, rule).judge([&](const auto& mine) {
    return reduce<float, true>(serial_space{}, comm, one, rule, *one.schedule, mine);
  });
}

}  // namespace adasum::test
