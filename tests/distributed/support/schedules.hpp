// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include <adasum/schedule/automatic.hpp>
#include <adasum/schedule/direct.hpp>
#include <adasum/schedule/gram.hpp>
#include <adasum/schedule/recursive_doubling.hpp>
#include <adasum/schedule/recursive_halving.hpp>
#include <adasum/schedule/splitting.hpp>

namespace adasum::test {

/// visit(schedule, name) for every schedule that any communicator can run. (recursive_halving is splitting{2}.)
template <class Visitor>
void for_each_message_schedule(Visitor&& visit) {
  visit(schedules::recursive_doubling{}, std::string("recursive_doubling"));
  visit(schedules::recursive_halving{}, std::string("recursive_halving"));
  visit(schedules::splitting{4}, std::string("splitting{4}"));
  visit(schedules::splitting{8}, std::string("splitting{8}"));
  visit(schedules::gram{}, std::string("gram"));
  visit(schedules::automatic{.in_place = false}, std::string("automatic"));
}

/// The same for every schedule of the library; the communicator must offer shared memory.
template <class Visitor>
void for_each_schedule(Visitor&& visit) {
  for_each_message_schedule(visit);
  visit(schedules::direct{}, std::string("direct"));
}

}  // namespace adasum::test
