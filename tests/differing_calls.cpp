// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <adasum/adasum.hpp>

#include "support/disagreements.hpp"
#include "support/random_gradients.hpp"
#include "support/thread_reduction.hpp"

namespace test_of_differing_calls {

/// Ranks that make one call after the other, at random, and not always the same: where they are all alike, they return and have
/// the result; where they are not, all of them throw, no gradient has changed, and the next call is right.

using namespace adasum::test;

namespace {

const adasum::serial_space space;
const adasum::segments segs{40, 0, 7, 2153}, few{3, 11}, others{2200};

/// What a rank does. Those that compare, and those that do not, are never alike.
enum class action {
  call,
  call_with_other_segments,
  call_that_compares,
  short_call,
  call_by_messages,
  call_with_bad_segments,
  run,
  run_posted,  // is like run
  run_in_buffer,
  run_beside_buffer,
  make_plan,
  count
};

/// One rank's plans. (Of two that are alike, ranks would not notice that each runs another.)
struct plans_of_rank {
  explicit plans_of_rank(const adasum::thread_communicator& comm)
      : plain(adasum::plan_allreduce<float>(space, comm, segs, checked)),
        with_buffer(adasum::plan_allreduce<float>(space, comm, others, checked)) {
    with_buffer.buffer();
  }
  decltype(adasum::plan_allreduce<float>(space, std::declval<const adasum::thread_communicator&>(), segs,
                                         checked)) plain,
      with_buffer;
};

void act(action what, const adasum::thread_communicator& comm, plans_of_rank& plans, std::vector<float>& gradient) {
  switch (what) {
    case action::call: adasum::adasum_allreduce(space, comm, gradient, segs, unchecked); break;
    case action::call_with_other_segments: adasum::adasum_allreduce(space, comm, gradient, others, unchecked); break;
    case action::call_that_compares: adasum::adasum_allreduce(space, comm, gradient, segs, checked); break;
    case action::short_call: {
      std::vector<float> beginning(gradient.begin(), gradient.begin() + 14);
      adasum::adasum_allreduce(space, comm, beginning, few, unchecked);
      std::ranges::copy(beginning, gradient.begin());
      break;
    }
    case action::call_by_messages:
      adasum::adasum_allreduce(space, comm, gradient, segs, adasum::schedules::all_to_all{}, checked);
      break;
    case action::call_with_bad_segments: adasum::adasum_allreduce(space, comm, gradient, few, unchecked); break;
    case action::run: plans.plain(gradient); break;
    case action::run_posted:
      plans.plain.start(gradient);
      while (!plans.plain.test()) std::this_thread::yield();
      plans.plain.wait();
      break;
    case action::run_in_buffer: {
      auto buffer = plans.with_buffer.buffer();
      std::ranges::copy(gradient, buffer.begin());
      plans.with_buffer();
      std::ranges::copy(buffer, gradient.begin());
      break;
    }
    case action::run_beside_buffer: plans.with_buffer(gradient); break;
    case action::make_plan: adasum::plan_allreduce<float>(space, comm, segs, checked); break;
    case action::count: break;
  }
}

bool are_alike(action a, action b) {
  const auto kind = [](action x) { return x == action::run_posted ? action::run : x; };
  return kind(a) == kind(b);
}

/// what[i][r]: of rank r, in step i.
std::vector<std::vector<action>> steps_at_random(std::size_t count, std::size_t ranks, unsigned seed) {
  std::mt19937 random(seed);
  const auto any = [&](std::size_t below) { return std::uniform_int_distribution<std::size_t>(0, below - 1)(random); };
  const auto any_action = [&] { return static_cast<action>(any(static_cast<std::size_t>(action::count))); };
  std::vector<std::vector<action>> steps;
  for (std::size_t i = 0; i < count; ++i) {
    auto& step = steps.emplace_back(ranks, any_action());
    if (any(3) > 0) continue;
    for (auto changes = 1 + any(2); changes > 0; --changes) step[any(ranks)] = any_action();
  }
  return steps;
}

/// How an action ended on one rank, and what it left in the gradient.
struct taken {
  ending end;
  std::vector<float> gradient;
};

taken take(action what, const adasum::thread_communicator& comm, plans_of_rank& plans, const std::vector<float>& from) {
  taken found;
  found.end = end_of(from, [&](auto& gradient) {
    try {
      act(what, comm, plans, gradient);
    } catch (...) {
      found.gradient = gradient;
      throw;
    }
    found.gradient = gradient;
  });
  return found;
}

void check_at_random(std::size_t ranks, std::size_t count, unsigned seed) {
  CAPTURE(ranks);
  const auto gradients = random_gradients<float>(ranks, segs.total(), 7);
  const auto steps = steps_at_random(count, ranks, seed);
  const auto size = static_cast<int>(ranks);
  // What each action gives where all ranks take it, on a communicator of its own.
  std::vector<std::vector<taken>> expected;  // [action][rank]
  for (std::size_t a = 0; a < static_cast<std::size_t>(action::count); ++a)
    expected.push_back(results_of(on_ranks(size, [&](const adasum::thread_communicator& comm) {
      plans_of_rank plans(comm);
      return take(static_cast<action>(a), comm, plans, gradients[static_cast<std::size_t>(comm.rank())]);
    })));
  const auto wrong = results_of(on_ranks(size, [&](const adasum::thread_communicator& comm) {
    const auto r = static_cast<std::size_t>(comm.rank());
    plans_of_rank plans(comm);
    std::vector<std::string> found;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const auto own = steps[i][r];
      const auto [end, gradient] = take(own, comm, plans, gradients[r]);
      const bool alike = std::ranges::all_of(steps[i], [&](action other) { return are_alike(own, other); });
      const auto& right = expected[static_cast<std::size_t>(own)][r];
      const bool good = alike ? end.how == right.end.how && same_bits(gradient, right.gradient)
                              : end.how != way::returned && end.how != way::other && end.unchanged;
      if (!good)
        found.push_back("step " + std::to_string(i) + ", action " + std::to_string(static_cast<int>(own)) + ": " +
                        to_string(end.how) + " " + end.message);
    }
    return found;
  }));
  for (const auto& rank : wrong)
    for (const auto& what : rank) FAIL_CHECK(what);
}

}  // namespace

TEST_CASE("ranks that do not always make the same call") {
  for (const std::size_t ranks : {2u, 3u, 5u}) check_at_random(ranks, 150, static_cast<unsigned>(ranks));
}

TEST_CASE("so many ranks that they do not all hear from each other") { check_at_random(9, 60, 9); }

}  // namespace test_of_differing_calls
