// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <memory>

#include "plan.hpp"
#include "reduction.hpp"

namespace adasum::detail {

ADASUM_INLINE std::unique_ptr<reduction> new_reduction(const plan_arguments& given, joint_set_up& together) {
  return std::make_unique<plan>(given, together);
}

}  // namespace adasum::detail
