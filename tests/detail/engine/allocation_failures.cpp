// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <adasum/adasum.hpp>

#include "support/allocations.hpp"
#include "support/disagreements.hpp"
#include "support/random_gradients.hpp"
#include "support/thread_reduction.hpp"

namespace test_of_detail_engine_allocation_failures {

/// Memory that is short on one rank: whichever allocation fails there, no rank waits for ever, ranks that return have the
/// result, and the communicator works afterwards.

using namespace adasum::test;

namespace {

const adasum::segments segs{9, 0, 12, 5, 7};
const adasum::serial_space space;

/// Segment 2 has squares beyond double, in segment 3 the gradients of two neighbours are opposed: these are recombined.
std::vector<std::vector<double>> gradients_of(int size, const adasum::segments& cut) {
  auto gradients = random_gradients<double>(static_cast<std::size_t>(size), cut.total(), 41);
  for (std::size_t r = 0; r < gradients.size(); ++r) {
    for (auto x = cut.offset(2); x < cut.offset(3); ++x) gradients[r][x] *= 1e170;
    if (r % 2 == 1)
      for (auto x = cut.offset(3); x < cut.offset(4); ++x) gradients[r][x] = -gradients[r - 1][x];
  }
  return gradients;
}

/// What one rank saw.
struct seen {
  ending end;
  bool ran_out = false;                 ///< whether an allocation failed
  std::vector<double> midway;           ///< the gradient, where the calls returned
  std::vector<double> single, planned;  ///< what reductions gave afterwards
};

struct noted_failures {  // and whether there were any
  failing_allocations failures;
  bool& ran_out;
  noted_failures(std::size_t n, std::size_t in_a_row, bool& noted) : failures(n, in_a_row), ran_out(noted) {}
  ~noted_failures() { ran_out = failures.any(); }
};

using bits_of_ranks = std::vector<std::vector<double>>;  // what each rank's gradient must hold, to the last bit

/// What calls(comm, gradient) give where nothing fails.
template <class Calls>
bits_of_ranks undisturbed(int size, const Calls& calls) {
  const auto inputs = gradients_of(size, segs);
  return results_of(on_ranks(size, [&](const adasum::thread_communicator& comm) {
    auto gradient = inputs[static_cast<std::size_t>(comm.rank())];
    calls(comm, gradient);
    return gradient;
  }));
}
/// What a single call under a rule gives.
template <class Rule, class Schedule>
bits_of_ranks reduced_by(int size, const Rule& rule, const Schedule& order, const adasum::options& choices = unchecked,
                         const adasum::segments& cut = segs) {
  bits_of_ranks all;
  for (auto& rank : reduce_on_threads<double>(gradients_of(size, cut), cut, rule, order, choices))
    all.push_back(std::move(rank.gradient));
  return all;
}

/// calls(comm, gradient) on each rank, with the n'th allocation of one of them failing, and those after it up to
/// `in_a_row`, for each n in turn (see first_to_fail); then a single call and a plan on the same communicator, which must
/// be right. Where the calls return, on whichever rank, they must have given `expected`; if that is
/// empty, what a single call gives.
template <class Schedule, class Calls>
void check_every_allocation(const std::string& name, int size, const Schedule& order, const Calls& calls,
                            std::size_t in_a_row = 1, const adasum::segments& cut = segs, bits_of_ranks expected = {}) {
  const auto inputs = gradients_of(size, cut);
  const auto right = reduced_by(size, adasum::rules::adasum{}, order, unchecked, cut);
  if (expected.empty()) expected = right;
  const auto from_plan = [&](const auto& comm) {
    auto gradient = inputs[static_cast<std::size_t>(comm.rank())];
    auto plan = adasum::plan_allreduce<double>(space, comm, cut, order, unchecked);
    plan(gradient);
    return gradient;
  };
  const auto planned = results_of(on_ranks(size, from_plan));
  for (const int culprit : {0, size - 1}) {
    bool ran_out = true;
    for (std::size_t n = first_to_fail(); ran_out; n += allocations_apart) {
      case_under_test() = name + " on " + std::to_string(size) + " ranks, where allocation " + std::to_string(n) +
                          (in_a_row == 1 ? "" : " and those after it") + " of rank " + std::to_string(culprit) +
                          " fails";
      CAPTURE(case_under_test());
      const auto ranks = on_ranks(size, [&](const adasum::thread_communicator& comm) {
        seen found;
        auto gradient = inputs[static_cast<std::size_t>(comm.rank())];
        found.midway.reserve(gradient.size());
        found.end = end_of(std::vector<double>{}, [&](auto&) {
          std::optional<noted_failures> failures;
          if (comm.rank() == culprit) failures.emplace(n, in_a_row, found.ran_out);
          calls(comm, gradient);
          failures.reset();
          found.midway = gradient;
        });
        found.single = inputs[static_cast<std::size_t>(comm.rank())];
        adasum::adasum_allreduce(space, comm, found.single, cut, order, unchecked);
        found.planned = from_plan(comm);
        return found;
      });
      for (std::size_t r = 0; r < ranks.size(); ++r) {
        REQUIRE_MESSAGE(ranks[r].value, "rank ", r, " ", ranks[r].description());
        const auto& rank = *ranks[r].value;
        CAPTURE(r);
        CAPTURE(rank.end.message);
        CHECK(same_bits(rank.single, right[r]));
        CHECK(same_bits(rank.planned, planned[r]));
        const auto how = rank.end.how;
        if (static_cast<int>(r) != culprit)  // what fails after the last exchange concerns the culprit alone
          CHECK((how == way::returned || how == way::communication_error || how == way::agreement_error));
        if (how == way::returned) CHECK(same_bits(rank.midway, expected[r]));
      }
      ran_out = ranks[static_cast<std::size_t>(culprit)].value->ran_out;
      const auto& end = ranks[static_cast<std::size_t>(culprit)].value->end;
      CAPTURE(end.message);
      if (end.how == way::returned) {  // it could do without
        for (const auto& rank : ranks) CHECK(rank.value->end.how == way::returned);
      } else {
        CHECK(end.how == way::other);
        CHECK(end.message == std::bad_alloc().what());
      }
    }
  }
}

/// visit(schedule, name, size, options). Thousands of reductions: not every number of ranks both ways, and fewer where each
/// takes ten times as long.
template <class Visitor>
void for_each_case(const Visitor& visit) {
  for_each_schedule([&](const auto& order, const std::string& name) {
#ifdef ADASUM_TEST_SANITIZED
    visit(order, name + ", checked", 3, checked);
#else
    visit(order, name + ", checked", 2, checked);
    visit(order, name + ", unchecked", 5, unchecked);
#endif
  });
}

}  // namespace

TEST_CASE("in a single call") {
  for_each_case([](const auto& order, const std::string& name, int size, const auto& choices) {
    check_every_allocation("a single call, " + name, size, order, [&](const auto& comm, auto& gradient) {
      adasum::adasum_allreduce(space, comm, gradient, segs, order, choices);
    });
  });
}

TEST_CASE("while a plan is made") {
  for_each_case([](const auto& order, const std::string& name, int size, const auto& choices) {
    check_every_allocation(
        "making a plan, " + name, size, order,
        [&](const auto& comm, auto& gradient) {
          adasum::plan_allreduce<double>(space, comm, segs, order, choices);
          std::ranges::fill(gradient, 0.0);
        },
        1, segs, bits_of_ranks(static_cast<std::size_t>(size), std::vector<double>(segs.total())));
  });
}

TEST_CASE("while a plan's buffer is made, and in the first run") {
  for_each_case([](const auto& order, const std::string& name, int size, const auto& choices) {
    check_every_allocation("a plan's buffer, " + name, size, order, [&](const auto& comm, auto& gradient) {
      auto plan = without_failures([&] { return adasum::plan_allreduce<double>(space, comm, segs, order, choices); });
      const auto buffer = plan.buffer();
      std::ranges::copy(gradient, buffer.begin());
      plan();
      std::ranges::copy(buffer, gradient.begin());
    });
  });
}

TEST_CASE("in the first and in the second run of a plan") {
  for_each_case([](const auto& order, const std::string& name, int size, const auto& choices) {
    check_every_allocation("the runs of a plan, " + name, size, order, [&](const auto& comm, auto& gradient) {
      auto plan = without_failures([&] { return adasum::plan_allreduce<double>(space, comm, segs, order, choices); });
      auto first = without_failures([&] { return gradient; });
      // A run that fails does so on all ranks: they all go on, or none.
      std::exception_ptr problem;
      try {
        plan(first);
      } catch (...) {
        problem = std::current_exception();
      }
      plan(gradient);
      if (problem) std::rethrow_exception(problem);
    });
  });
}

TEST_CASE("in start(), test() and wait(): one allocation, or that and all after it") {
  for_each_case([](const auto& order, const std::string& name, int size, const auto& choices) {
    for (const auto in_a_row : {std::size_t{1}, failing_allocations::all})
      check_every_allocation(
          "start, test and wait, " + name, size, order,
          [&](const auto& comm, auto& gradient) {
            auto plan =
                without_failures([&] { return adasum::plan_allreduce<double>(space, comm, segs, order, choices); });
            plan.start(gradient);
            while (!plan.test()) std::this_thread::yield();
            plan.wait();
          },
          in_a_row);
  });
}

TEST_CASE("in buckets, from making them to the end of a pass") {
  for_each_case([](const auto& order, const std::string& name, int size, const auto& choices) {
    const auto calls = [&](const auto& comm, auto& gradient) {
      const std::size_t lengths[] = {20, 13};
      auto buckets = adasum::plan_bucketed<double>(space, comm, lengths, 150, order, choices);
      const std::span<double> all(gradient);
      buckets.ready(1, all.subspan(20));
      buckets.ready(0, all.first(20));
      buckets.wait();
    };
    check_every_allocation("buckets, " + name, size, order, calls, 1, segs, undisturbed(size, calls));
  });
}

TEST_CASE("in buckets that are weighed together, some of them combined vector by vector") {
  const std::vector<adasum::segments> parameters{{9, 0, 12}, {5, 7}};
  for (const int size : {2, 3}) {
    const auto calls = [&](const auto& comm, auto& gradient) {
      auto buckets = adasum::plan_bucketed<double>(space, comm, parameters, 150, adasum::rules::adacons{}, unchecked);
      const std::span<double> all(gradient);
      buckets.ready(1, all.subspan(21));
      buckets.ready(0, all.first(21));
      buckets.wait();
    };
    check_every_allocation("buckets weighed together", size, adasum::schedules::all_to_all{}, calls, 1, segs,
                           undisturbed(size, calls));
  }
}

TEST_CASE("of shards, from making the plan to the end of its first run") {
  // Every shard of a replica has all of its gradient, so that all ranks get the same result.
  const std::vector<std::size_t> everything{0, 1, 2, 3, 4};
  const auto gradients = gradients_of(2, segs);
  for (const auto& choices : {checked, unchecked}) {
    const auto with_shards = [&](const std::vector<adasum::shard>& where, const auto& visit) {
      return [&, where](const auto& comm, auto& gradient) {
        const auto& mine = where[static_cast<std::size_t>(comm.rank())];
        std::ranges::copy(gradients[static_cast<std::size_t>(mine.replica)], gradient.begin());
        visit(comm, gradient, mine);
      };
    };
    const auto by_plan = [&](const auto& comm, auto& gradient, const adasum::shard& mine) {
      adasum::plan_allreduce<double>(space, comm, segs, mine, choices)(gradient);
    };
    const auto by_call = [&](const auto& comm, auto& gradient, const adasum::shard& mine) {
      adasum::adasum_allreduce(space, comm, gradient, segs, mine, choices);
    };
    std::vector<adasum::shard> where;
    for (int r = 0; r < 4; ++r) where.push_back({r / 2, r % 2, everything});
    const auto plan = with_shards(where, by_plan);
    const auto call = with_shards(where, by_call);
    check_every_allocation("shards", 4, adasum::schedules::automatic{}, plan, 1, segs, undisturbed(4, call));
    check_every_allocation("shards, a call", 4, adasum::schedules::recursive_halving{}, call, 1, segs,
                           undisturbed(4, plan));
    // One replica of three shards, whose small sums take two messages in one exchange.
    std::vector<adasum::shard> cut_in_three;
    for (int r = 0; r < 3; ++r) cut_in_three.push_back({0, r, everything});
    check_every_allocation("three shards", 3, adasum::schedules::automatic{}, with_shards(cut_in_three, by_plan), 2,
                           segs, bits_of_ranks(3, gradients[0]));
  }
}

TEST_CASE("in the first run of a plan by which one rank of a node tells many others") {
  const adasum::schedules::hierarchical order{std::vector{0, 0, 0, 0, 0, 0, 1}, adasum::rules::adasum{}};
  for (const auto in_a_row : {std::size_t{1}, failing_allocations::all})
    check_every_allocation(
        "one carrier", 7, order,
        [&](const auto& comm, auto& gradient) {
          auto plan =
              without_failures([&] { return adasum::plan_allreduce<double>(space, comm, segs, order, unchecked); });
          plan(gradient);
        },
        in_a_row);
}

TEST_CASE("in a run in which NaN is an error on all ranks") {
  const adasum::options raises{.check_agreement = false, .nonfinite = adasum::nonfinite_policy::raise};
  const auto inputs = gradients_of(4, segs);
  for_each_schedule([&](const auto& order, const std::string& name) {
    const auto expected = reduced_by(4, adasum::rules::adasum{}, order);
    for (const int culprit : {0, 3}) {
      bool ran_out = true;
      for (std::size_t n = first_to_fail(); ran_out; n += allocations_apart) {
        case_under_test() = "NaN is an error, " + name + ", allocation " + std::to_string(n);
        CAPTURE(case_under_test());
        const auto ranks = results_of(on_ranks(4, [&](const adasum::thread_communicator& comm) {
          auto plan = adasum::plan_allreduce<double>(space, comm, segs, order, raises);
          auto gradient = inputs[static_cast<std::size_t>(comm.rank())];
          auto with_nan = gradient;
          if (comm.rank() == 1) with_nan[4] = quiet_nan<double>();
          seen found;
          found.end = end_of(std::vector<double>{}, [&](auto&) {
            std::optional<noted_failures> failures;
            if (comm.rank() == culprit) failures.emplace(n, failing_allocations::all, found.ran_out);
            plan(with_nan);
          });
          plan(gradient);
          found.planned = gradient;
          return found;
        }));
        ran_out = ranks[static_cast<std::size_t>(culprit)].ran_out;
        for (std::size_t r = 0; r < ranks.size(); ++r) {
          const auto& end = ranks[r].end;
          CAPTURE("rank " + std::to_string(r) + ": " + end.message);
          const bool found_nan = end.message.find("Inf or NaN in") != std::string::npos;
          const bool failed = static_cast<int>(r) == culprit ? end.message == std::bad_alloc().what()
                                                             : end.how == way::communication_error;
          CHECK((found_nan || (ran_out && failed)));
          CHECK(same_bits(ranks[r].planned, expected[r]));
        }
      }
    }
  });
}

}  // namespace test_of_detail_engine_allocation_failures
