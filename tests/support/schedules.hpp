// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <functional>
#include <string>

#include <adasum/schedules/all_to_all.hpp>
#include <adasum/schedules/automatic.hpp>
#include <adasum/schedules/recursive_doubling.hpp>
#include <adasum/schedules/recursive_halving.hpp>
#include <adasum/schedules/shared_memory.hpp>

#include "any_schedule.hpp"

namespace adasum::test {

using schedule_visitor = std::function<void(const any_schedule&, const std::string& name)>;

/// visit(schedule, name) for every schedule that any communicator can run. (recursive_halving is recursive_halving{.radix = 2}.)
inline void for_each_message_schedule(const schedule_visitor& visit) {
  visit(schedules::recursive_doubling{}, "recursive_doubling");
  visit(schedules::recursive_halving{}, "recursive_halving");
  visit(schedules::recursive_halving{.radix = 4}, "recursive_halving{.radix = 4}");
  visit(schedules::recursive_halving{.radix = 8}, "recursive_halving{.radix = 8}");
  visit(schedules::recursive_halving{.most_parts = 2}, "recursive_halving{.most_parts = 2}");
  visit(schedules::all_to_all{}, "all_to_all");
  visit(schedules::automatic{.in_place = false}, "automatic");
}

/// The same for every schedule of the library; the communicator must offer shared memory.
inline void for_each_schedule(const schedule_visitor& visit) {
  for_each_message_schedule(visit);
  visit(schedules::shared_memory{}, "shared_memory");
  visit(schedules::shared_memory{.radix = 2}, "shared_memory{.radix = 2}");  // levels among few ranks
}

}  // namespace adasum::test
