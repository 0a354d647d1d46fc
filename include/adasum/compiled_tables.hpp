// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "core/config.hpp"
#include "detail/references/rule_ref.hpp"
#include "detail/references/schedule_ref.hpp"
#include "detail/references/space_ref.hpp"
#include "exec/serial.hpp"
#include "rules/adasum.hpp"
#include "schedules/automatic.hpp"

/// What most programs need of the library's own types, compiled with the engine (ADASUM_COMPILED).
/// @cond internal
#if defined(ADASUM_COMPILED)
namespace adasum::detail {
extern template space_table table_of_space<float, serial_space>;
extern template space_table table_of_space<double, serial_space>;
extern template rule_table table_of_rule<rules::adasum>;
extern template schedule_table table_of_schedule<schedules::automatic>;
}  // namespace adasum::detail
#endif
/// @endcond
