// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <adasum/adasum.hpp>

#include "support/arrangements.hpp"
#include "support/bits.hpp"
#include "support/nodes.hpp"
#include "support/parts.hpp"
#include "support/random_gradients.hpp"
#include "support/thread_reduction.hpp"

namespace test_of_reduce {

/// The root has the bits that an allreduce gives, and the report is the allreduce's on all ranks.

using namespace adasum::test;

namespace {

constexpr auto nan = std::numeric_limits<float>::quiet_NaN();
const adasum::serial_space exec;

/// What a rank finds wrong with plans for the first root, one in the middle and the last; empty if nothing. After each run
/// the gradient is overwritten at once, as its owner may.
template <class Comm, class Rule, class Schedule>
std::string differences(const Comm& comm, const std::vector<float>& gradient, const adasum::segments& segs,
                        const Rule& rule, const Schedule& order, const adasum::options& choices) {
  std::string found;
  auto expected = gradient;
  auto all = adasum::plan_allreduce<float>(exec, comm, segs, rule, order, choices);
  const adasum::report told = all(expected);
  const auto of_all = all.buffer();
  std::ranges::copy(gradient, of_all.begin());
  const adasum::report told_in_buffer = all();
  const std::vector<float> expected_in_buffer(of_all.begin(), of_all.end());
  for (const int root : {0, comm.size() / 2, comm.size() - 1}) {
    auto plan = adasum::plan_reduce<float>(exec, comm, segs, root, rule, order, choices);
    if (plan.root() != root) found += "another root; ";
    const auto check = [&](const std::vector<float>& got, const std::vector<float>& wanted, const adasum::report& a,
                           const adasum::report& b, const char* how) {
      if (comm.rank() == root && !same_bits(got, wanted)) found += std::string(how) + ": other bits; ";
      if (!same_report(a, b)) found += std::string(how) + ": another report; ";
    };
    auto mine = gradient;
    const auto& report = plan(mine);
    auto copy = mine;
    std::ranges::fill(mine, nan);
    check(copy, expected, report, told, "plan");
    mine = gradient;
    plan.start(mine);
    plan.test();
    plan.wait();
    copy = mine;
    std::ranges::fill(mine, nan);
    check(copy, expected, report, told, "started");
    const auto buffer = plan.buffer();
    std::ranges::copy(gradient, buffer.begin());
    const auto& in_buffer = plan();
    copy.assign(buffer.begin(), buffer.end());
    std::ranges::fill(buffer, nan);
    check(copy, expected_in_buffer, in_buffer, told_in_buffer, "buffer");
  }
  return found;
}

template <class Rule, class Schedule>
void check(const std::vector<std::vector<float>>& gradients, const adasum::segments& segs, const Rule& rule,
           const Schedule& order, const adasum::options& choices = {.check_agreement = false}) {
  require_none(on_ranks(static_cast<int>(gradients.size()), [&](const adasum::thread_communicator& comm) {
    return differences(comm, gradients[static_cast<std::size_t>(comm.rank())], segs, rule, order, choices);
  }));
}

}  // namespace

TEST_CASE("every schedule") {
  for_each_dealt_gradient([](const auto& gradients, const auto& segs) {
    for_each_schedule([&](const auto& order, const std::string& name) {
      CAPTURE(name);
      check(gradients, segs, adasum::rules::adasum{}, order);
    });
    check(gradients, segs, adasum::rules::adasum{}, adasum::schedules::automatic{});
    check(gradients, segs, adasum::rules::geometric_median{}, adasum::schedules::all_to_all{});
    check(gradients, segs, adasum::rules::adacons{}, adasum::schedules::all_to_all{});
  });
}

TEST_CASE("on nodes whose ranks share the plan's memory") {
  for (const auto& nodes : arrangements) {
    CAPTURE(nodes.size());
    const auto gradients = random_gradients<float>(nodes.size(), 20'000, nodes.size());
    const auto blocks = node_communicator::make_blocks();
    require_none(on_ranks(static_cast<int>(nodes.size()), [&](const adasum::thread_communicator& threads) {
      return differences(node_communicator(threads, nodes, blocks), gradients[static_cast<std::size_t>(threads.rank())],
                         adasum::segments{7'000, 13'000}, adasum::rules::adasum{}, adasum::schedules::automatic{},
                         {.check_agreement = false});
    }));
  }
}

TEST_CASE("messages of 16 bits, and a gradient that is left out") {
  auto gradients = random_gradients<float>(5, 300, 9);
  gradients[1][120] = nan;
  for_each_schedule([&](const auto& order, const std::string& name) {
    CAPTURE(name);
    check(gradients, adasum::segments{100, 200}, adasum::rules::adasum{}, order,
          {.check_agreement = false,
           .nonfinite = adasum::nonfinite_policy::exclude,
           .wire = adasum::wire_format::bfloat16});
  });
}

TEST_CASE("single calls, made again with another root") {
  for (const int size : {1, 2, 3, 5, 8}) {
    CAPTURE(size);
    const auto gradients = random_gradients<float>(static_cast<std::size_t>(size), 1001, 11);
    const adasum::segments segs{300, 701};
    require_none(on_ranks(size, [&](const adasum::thread_communicator& comm) {
      std::string found;
      const auto& gradient = gradients[static_cast<std::size_t>(comm.rank())];
      // By plans: the single calls below must not find what an allreduce has kept, which would give the same bits.
      auto expected = gradient, mean = gradient;
      auto all = adasum::plan_allreduce<float>(exec, comm, segs);
      adasum::plan_allreduce<float>(exec, comm, segs, adasum::rules::mean{})(mean);
      const auto& told = all(expected);
      for (int turn = 0; turn < 3; ++turn) {
        for (int root = 0; root < size; ++root) {
          auto mine = gradient, mine_too = gradient;
          if (!same_report(adasum::adasum_reduce(exec, comm, mine, root, segs), told)) found += "another report; ";
          adasum::combine_reduce(exec, comm, mine_too, root, adasum::rules::mean{}, segs);
          if (comm.rank() == root && !(same_bits(mine, expected) && same_bits(mine_too, mean))) found += "other bits; ";
        }
      }
      return found;
    }));
  }
}

TEST_CASE("the bytes of long gradients: N elements from each rank but the root, which sends its part only once") {
  constexpr std::size_t length = 120'000;
  for (const int size : {2, 4, 8}) {
    const auto sent = results_of(on_ranks(size, [&](const adasum::thread_communicator& comm) {
      std::vector<float> mine(length, static_cast<float>(comm.rank() + 1));
      return adasum::adasum_reduce(exec, comm, mine, 0, adasum::schedules::all_to_all{}).bytes_sent();
    }));
    const double elements = 4.0 * length, small = 64 * size * 40;
    for (std::size_t r = 0; r < sent.size(); ++r) {
      const double expected = r == 0 ? elements * (size - 1) / size : elements;
      CHECK(static_cast<double>(sent[r]) >= expected);
      CHECK(static_cast<double>(sent[r]) <= expected + small);
    }
  }
}

TEST_CASE("plans: empty, and their members") {
  adasum::reduce_plan<float, adasum::serial_space, adasum::self_communicator> plan;
  CHECK(plan.is_empty());
  CHECK_THROWS_WITH_AS(static_cast<void>(plan.root()),
                       "adasum::reduce_plan::root: the plan is empty; plan_reduce makes one", adasum::bad_input);
  plan = adasum::plan_reduce<float>(exec, adasum::self_communicator{}, 3, 0);
  CHECK(plan.root() == 0);
  std::vector<float> gradient{1, 2, 3};
  plan(gradient);
  CHECK(gradient == std::vector<float>{1, 2, 3});
}

}  // namespace test_of_reduce
