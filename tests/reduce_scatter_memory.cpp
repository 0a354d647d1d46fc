// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <adasum/adasum.hpp>

#include "support/allocations.hpp"
#include "support/disagreements.hpp"
#include "support/parts.hpp"
#include "support/random_gradients.hpp"
#include "support/sizes.hpp"
#include "support/thread_reduction.hpp"

namespace test_of_reduce_scatter_memory {

/// Where ranks get parts of the result, or one of them all of it: plans that run again allocate nothing, and memory that is
/// short on one rank leaves no other waiting. (A hang ends the program: see on_each.)

using namespace adasum::test;

namespace {

const adasum::serial_space exec;
const adasum::segments segs{9, 0, 12, 5, 7};

const std::vector<float>& gradient_of(int rank) {
  static const auto all = random_gradients<float>(8, segs.total(), 41);
  return all[static_cast<std::size_t>(rank)];
}

}  // namespace

TEST_CASE("from the second run on a plan allocates nothing") {
  for_each_schedule([](const auto& order, const std::string& name) {
    CAPTURE(name);
    for (const int size : {1, 2, 3, 4, 5})
      for (const auto& choices : {checked, unchecked}) {
        CAPTURE(size);
        const auto ranks = on_ranks(size, [&](const adasum::thread_communicator& comm) {
          auto plan =
              adasum::plan_reduce_scatter<float>(exec, comm, segs, some_parts(segs.total(), size)[1], order, choices);
          auto to_one = adasum::plan_reduce_scatter<float>(exec, comm, segs, some_parts(segs.total(), size)[2],
                                                           adasum::rules::mean{}, order, choices);
          auto gradient = gradient_of(comm.rank()), other = gradient;
          plan(gradient);
          to_one(other);
          const auto before = allocations();
          for (int run = 0; run < 3; ++run) {
            plan(gradient);
            to_one(other);
          }
          return allocations() - before;
        });
        for (const auto& rank : ranks) {
          REQUIRE_MESSAGE(rank.value, rank.description());
          CHECK(*rank.value == 0);
        }
      }
  });
}

namespace {

/// calls(comm, gradient) on each rank, with the n'th allocation of one of them failing, for each n in turn (see
/// first_to_fail); then a good call.
template <class Calls>
void check_every_allocation(const std::string& name, int size, const Calls& calls) {
  for (const int culprit : {0, size - 1}) {
    bool ran_out = true;
    for (std::size_t n = first_to_fail(); ran_out; n += allocations_apart) {
      case_under_test() = name + " on " + std::to_string(size) + " ranks, where allocation " + std::to_string(n) +
                          " of rank " + std::to_string(culprit) + " fails";
      CAPTURE(case_under_test());
      const auto ranks = on_ranks(size, [&](const adasum::thread_communicator& comm) {
        auto gradient = gradient_of(comm.rank());
        bool out = false;
        std::exception_ptr problem;
        {
          std::optional<failing_allocations> failures;
          if (comm.rank() == culprit) failures.emplace(n, std::size_t{1});
          try {
            calls(comm, gradient);
          } catch (...) {
            problem = std::current_exception();
          }
          out = failures && failures->any();
        }
        auto good = gradient_of(comm.rank()), expected = good;
        adasum::adasum_allreduce(exec, comm, expected, segs);
        adasum::adasum_reduce_scatter(exec, comm, good, segs);
        if (!same_elements(good, expected, adasum::part_of_rank(segs.total(), size, comm.rank())))
          throw adasum::bad_input("the next call gives other bits");
        return out;
      });
      ran_out = false;
      for (const auto& rank : ranks) {
        REQUIRE_MESSAGE(rank.value, rank.description());
        ran_out |= *rank.value;
      }
    }
  }
}

}  // namespace

TEST_CASE("one allocation that fails, in single calls and in a plan's run") {
  const auto check = [](const auto& order, const std::string& name, int size) {
    const auto given = some_parts(segs.total(), size)[1], for_one = some_parts(segs.total(), size)[2];
    for (const auto& choices : few_or_all<adasum::options>({checked}, {checked, unchecked})) {
      check_every_allocation("a single call, " + name, size, [&](const auto& comm, auto& gradient) {
        adasum::adasum_reduce_scatter(exec, comm, gradient, given, segs, order, choices);
      });
      check_every_allocation("a single call for one rank, " + name, size, [&](const auto& comm, auto& gradient) {
        adasum::combine_reduce_scatter(exec, comm, gradient, for_one, adasum::rules::mean{}, segs, order, choices);
      });
    }
    check_every_allocation("start, test and wait, " + name, size, [&](const auto& comm, auto& gradient) {
      auto plan = without_failures(
          [&] { return adasum::plan_reduce_scatter<float>(exec, comm, segs, given, order, unchecked); });
      plan.start(gradient);
      while (!plan.test()) std::this_thread::yield();
      plan.wait();
    });
  };
  for_each_schedule([&](const auto& order, const std::string& name) { check(order, name, 3); });
}

TEST_CASE("the same where one rank of a node tells many others") {
  const adasum::schedules::hierarchical order{std::vector{0, 0, 0, 0, 0, 0, 1}, adasum::rules::adasum{}};
  check_every_allocation("one carrier", 7, [&](const auto& comm, auto& gradient) {
    auto plan =
        without_failures([&] { return adasum::plan_reduce_scatter<float>(exec, comm, segs, order, unchecked); });
    plan(gradient);
  });
}

}  // namespace test_of_reduce_scatter_memory
