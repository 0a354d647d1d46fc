// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// Checkers for rules, execution spaces, communicators and schedules of your own: what core/concepts.hpp asks of them and
/// no compiler can see. They need no test framework. Each returns, or throws a bad_input that says what it found wrong
/// first, so that in any framework one line is a test:
///
///     CHECK_NOTHROW(adasum::check_rule(my_rule{}));               // doctest, Catch2
///     EXPECT_NO_THROW(adasum::check_schedule(my_schedule{}));     // GoogleTest
///     adasum::check_execution_space<float>(my_space{});           // or in main()
///     adasum::check_communicator(my_communicator, my_space{});    // on all of its ranks
///
/// The library's own types are tested by these, among other tests.
///
/// And simulated ranks, among which rules, spaces and schedules are tried: simulate() in testing/simulated_communicator.hpp.

#include "core/config.hpp"

#include "testing/communicator.hpp"
#include "testing/execution_space.hpp"
#include "testing/rule.hpp"
#include "testing/schedule.hpp"
#include "testing/simulated_communicator.hpp"
