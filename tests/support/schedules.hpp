// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include <adasum/schedule/all_to_all.hpp>
#include <adasum/schedule/automatic.hpp>
#include <adasum/schedule/recursive_doubling.hpp>
#include <adasum/schedule/recursive_halving.hpp>
#include <adasum/schedule/shared_memory.hpp>

namespace adasum::test {

/// visit(schedule, name) for every schedule that any communicator can run. (recursive_halving is recursive_halving{.radix = 2}.)
template <class Visitor>
void for_each_message_schedule(Visitor&& visit) {
  visit(schedules::recursive_doubling{}, std::string("recursive_doubling"));
  visit(schedules::recursive_halving{}, std::string("recursive_halving"));
  visit(schedules::recursive_halving{.radix = 4}, std::string("recursive_halving{.radix = 4}"));
  visit(schedules::recursive_halving{.radix = 8}, std::string("recursive_halving{.radix = 8}"));
  visit(schedules::recursive_halving{.most_parts = 2}, std::string("recursive_halving{.most_parts = 2}"));
  visit(schedules::all_to_all{}, std::string("all_to_all"));
  visit(schedules::automatic{.in_place = false}, std::string("automatic"));
}

/// The same for every schedule of the library; the communicator must offer shared memory.
template <class Visitor>
void for_each_schedule(Visitor&& visit) {
  for_each_message_schedule(visit);
  visit(schedules::shared_memory{}, std::string("shared_memory"));
  visit(schedules::shared_memory{.radix = 2}, std::string("shared_memory{.radix = 2}"));  // levels among few ranks
}

}  // namespace adasum::test
