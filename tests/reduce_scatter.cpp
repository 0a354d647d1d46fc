// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
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

namespace test_of_reduce_scatter {

/// Each rank's part has the bits that an allreduce gives there, and the report is the allreduce's.

using namespace adasum::test;

namespace {

constexpr auto nan = std::numeric_limits<float>::quiet_NaN();
const adasum::serial_space exec;

/// Deals out the result of one allreduce in several ways, by plans, at once and beside other work, and in the plan's
/// memory. After each run the gradient is overwritten at once, as its owner may.
template <class Comm, class Rule, class Schedule>
complaints differences(const Comm& comm, const std::vector<float>& gradient, const adasum::segments& segs,
                       const Rule& rule, const Schedule& order, const adasum::options& choices) {
  complaints found;
  auto expected = gradient;
  auto all = adasum::plan_allreduce<float>(exec, comm, segs, rule, order, choices);
  const adasum::report told = all(expected);
  // In the plan's memory, automatic may take another schedule.
  const auto of_all = all.buffer();
  std::ranges::copy(gradient, of_all.begin());
  const adasum::report told_in_buffer = all();
  const std::vector<float> expected_in_buffer(of_all.begin(), of_all.end());
  for (const auto& given : some_parts(gradient.size(), comm.size())) {
    auto plan = adasum::plan_reduce_scatter<float>(exec, comm, segs, given, rule, order, choices);
    const auto part = plan.part();
    if (part != given.of_rank(static_cast<std::size_t>(comm.rank()))) found += "another part; ";
    const auto check = [&](const std::vector<float>& got, const adasum::report& report, const char* how) {
      const bool in_buffer = how == std::string("buffer");
      if (!same_elements(got, in_buffer ? expected_in_buffer : expected, part))
        found += std::string(how) + ": other bits; ";
      if (!same_report(report, in_buffer ? told_in_buffer : told)) found += std::string(how) + ": another report; ";
    };
    auto mine = gradient;
    const auto& report = plan(mine);
    auto copy = mine;
    std::ranges::fill(mine, nan);
    check(copy, report, "plan");
    mine = gradient;
    plan.start(mine);
    plan.test();
    plan.wait();
    copy = mine;
    std::ranges::fill(mine, nan);
    check(copy, report, "started");
    const auto buffer = plan.buffer();
    std::ranges::copy(gradient, buffer.begin());
    const auto& in_buffer = plan();
    copy.assign(buffer.begin(), buffer.end());
    std::ranges::fill(buffer, nan);
    check(copy, in_buffer, "buffer");
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

TEST_CASE("adasum, by every schedule") {
  for_each_dealt_gradient([](const auto& gradients, const auto& segs) {
    for_each_schedule([&](const auto& order, const std::string& name) {
      CAPTURE(name);
      check(gradients, segs, adasum::rules::adasum{}, order);
    });
    check(gradients, segs, adasum::rules::adasum{}, adasum::schedules::automatic{});
  });
}

TEST_CASE("mean, by every schedule") {
  for_each_dealt_gradient([](const auto& gradients, const auto& segs) {
    for_each_schedule([&](const auto& order, const std::string& name) {
      CAPTURE(name);
      check(gradients, segs, adasum::rules::mean{}, order);
    });
  });
}

TEST_CASE("rules for all gradients at once, and for the whole model") {
  for_each_dealt_gradient([](const auto& gradients, const auto& segs) {
    check(gradients, segs, adasum::rules::geometric_median{}, adasum::schedules::all_to_all{});
    check(gradients, segs, adasum::rules::geometric_median{}, adasum::schedules::shared_memory{});
    check(gradients, segs, adasum::rules::adacons{}, adasum::schedules::all_to_all{});
    check(gradients, segs, adasum::rules::adacons{}, adasum::schedules::shared_memory{});
    check(gradients, segs, adasum::rules::unit_mean{}, adasum::schedules::automatic{});
  });
}

TEST_CASE("on nodes whose ranks share the plan's memory") {
  for (const auto& nodes : arrangements)
    for (const std::size_t length : {60u, 20'000u}) {
      CAPTURE(nodes.size());
      CAPTURE(length);
      const auto gradients = random_gradients<float>(nodes.size(), length, nodes.size());
      const auto blocks = node_communicator::make_blocks();
      require_none(on_ranks(static_cast<int>(nodes.size()), [&](const adasum::thread_communicator& threads) {
        return differences(node_communicator(threads, nodes, blocks),
                           gradients[static_cast<std::size_t>(threads.rank())],
                           adasum::segments{length / 3, length - length / 3}, adasum::rules::adasum{},
                           adasum::schedules::automatic{}, {.check_agreement = false});
      }));
    }
}

TEST_CASE("two rules, on nodes of several ranks") {
  const std::vector<int> nodes{0, 0, 1, 1, 1, 0, 1};
  const auto gradients = random_gradients<float>(nodes.size(), 900, 3);
  const adasum::segments segs{100, 0, 799, 1};
  check(gradients, segs, adasum::rules::adasum{}, adasum::schedules::hierarchical{nodes, adasum::rules::mean{}});
  check(gradients, segs, adasum::rules::adasum{},
        adasum::schedules::hierarchical{nodes, adasum::rules::mean{}, adasum::schedules::recursive_doubling{}});
}

TEST_CASE("gradients that cancel, and are combined vector by vector") {
  for (const int size : {2, 3, 4, 8}) {
    const auto gradients = random_gradients<float>(static_cast<std::size_t>(size), 400, 5, gradient_kind::opposed);
    for_each_schedule([&](const auto& order, const std::string& name) {
      CAPTURE(name);
      check(gradients, adasum::segments{90, 310}, adasum::rules::adasum{}, order);
    });
  }
}

TEST_CASE("messages of 16 bits are rounded as those of an allreduce") {
  for (const auto format : {adasum::wire_format::bfloat16, adasum::wire_format::binary16})
    for (const int size : {2, 3, 4, 6, 11}) {
      CAPTURE(size);
      const auto gradients = random_gradients<float>(static_cast<std::size_t>(size), 500, 7);
      const adasum::options choices{.check_agreement = false, .wire = format};
      for_each_schedule([&](const auto& order, const std::string& name) {
        CAPTURE(name);
        check(gradients, adasum::segments{101, 399}, adasum::rules::adasum{}, order, choices);
      });
      check(gradients, adasum::segments{101, 399}, adasum::rules::adacons{}, adasum::schedules::all_to_all{}, choices);
    }
}

TEST_CASE("gradients with NaN: propagated or left out, as in an allreduce; or raised on all ranks") {
  for (const int size : {2, 3, 4, 11}) {
    auto gradients = random_gradients<float>(static_cast<std::size_t>(size), 300, 9);
    gradients.back()[120] = nan;
    const adasum::segments segs{100, 150, 50};
    for_each_schedule([&](const auto& order, const std::string& name) {
      CAPTURE(name);
      for (const auto policy : {adasum::nonfinite_policy::propagate, adasum::nonfinite_policy::exclude})
        check(gradients, segs, adasum::rules::adasum{}, order, {.check_agreement = false, .nonfinite = policy});
      const auto ranks = on_ranks(size, [&](const adasum::thread_communicator& comm) {
        auto mine = gradients[static_cast<std::size_t>(comm.rank())];
        const auto before = mine;
        bool raised = false;
        try {
          adasum::adasum_reduce_scatter(exec, comm, mine, segs, order,
                                        adasum::options{.nonfinite = adasum::nonfinite_policy::raise});
        } catch (const adasum::nonfinite_error&) {
          raised = true;
        }
        return raised && same_bits(mine, before);
      });
      for (const auto& rank : ranks) {
        REQUIRE_MESSAGE(rank.value, rank.description());
        CHECK(*rank.value);
      }
    });
  }
}

TEST_CASE("single calls: with parts and without, made again, beside allreduces of the same gradient") {
  for (const int size : {1, 2, 3, 5, 8}) {
    CAPTURE(size);
    const auto gradients = random_gradients<float>(static_cast<std::size_t>(size), 1001, 11);
    const adasum::segments segs{300, 701};
    require_none(on_ranks(size, [&](const adasum::thread_communicator& comm) {
      complaints found;
      const auto self = static_cast<std::size_t>(comm.rank());
      // By plans: the single calls below must not find what an allreduce has kept, which would give the same bits.
      auto expected = gradients[self], mean = gradients[self];
      auto all = adasum::plan_allreduce<float>(exec, comm, segs);
      adasum::plan_allreduce<float>(exec, comm, segs, adasum::rules::mean{})(mean);
      const auto& told = all(expected);
      for (int turn = 0; turn < 3; ++turn) {
        auto whole = gradients[self];
        if (turn > 0) adasum::adasum_allreduce(exec, comm, whole, segs);
        if (turn > 0 && !same_bits(whole, expected)) found += "an allreduce gives other bits; ";
        const auto reduce = [&](const auto& call, adasum::index_range part, const std::vector<float>& wanted) {
          auto mine = gradients[self];
          const adasum::report report = call(mine);
          if (!same_elements(mine, wanted, part)) found += "other bits; ";
          if (&wanted == &expected && !same_report(report, told)) found += "another report; ";
        };
        const auto even = adasum::part_of_rank(1001, size, comm.rank());
        reduce([&](auto& g) { return adasum::adasum_reduce_scatter(exec, comm, g, segs); }, even, expected);
        reduce([&](auto& g) { return adasum::combine_reduce_scatter(exec, comm, g, adasum::rules::mean{}, segs); },
               even, mean);
        for (const auto& given : some_parts(1001, size)) {
          const auto part = given.of_rank(self);
          reduce([&](auto& g) { return adasum::adasum_reduce_scatter(exec, comm, g, given, segs); }, part, expected);
          reduce(
              [&](auto& g) {
                return adasum::combine_reduce_scatter(exec, comm, g, segs, adasum::rules::mean{}, given);
              },
              part, mean);
        }
      }
      return found;
    }));
  }
}

TEST_CASE("even parts differ by one element at most, and follow one another") {
  for (const int ranks : {1, 2, 3, 7, 12})
    for (const std::size_t length : {0u, 1u, 5u, 1001u}) {
      std::size_t at = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const auto part = adasum::part_of_rank(length, ranks, rank);
        CHECK(part.begin == at);
        CHECK(part.size() - length / static_cast<std::size_t>(ranks) <= 1);
        at = part.end;
      }
      CHECK(at == length);
    }
}

TEST_CASE("the bytes of long gradients: about half of an allreduce's") {
  constexpr std::size_t length = 240'000;
  const auto bytes_of = [&](int size, const auto& order, const auto& rule, bool scatters) {
    std::size_t sum = 0;
    for (const auto bytes : results_of(on_ranks(size, [&](const adasum::thread_communicator& comm) {
           std::vector<float> mine(length, static_cast<float>(comm.rank() + 1));
           mine[static_cast<std::size_t>(comm.rank())] = 9;
           return (scatters ? adasum::combine_reduce_scatter(exec, comm, mine, rule, order)
                            : adasum::combine_allreduce(exec, comm, mine, rule, order))
               .bytes_sent();
         })))
      sum += bytes;
    return static_cast<double>(sum);
  };
  for (const int size : {2, 4, 8, 12}) {
    CAPTURE(size);
    const double elements = 4.0 * length, ranks = size, each = elements * (ranks - 1);  // of all ranks, one way
    const double small = 64 * ranks * ranks * 40;                                       // inner products and norms
    const adasum::rules::adasum rule;
    const auto near = [&](double bytes, double expected) { return bytes >= expected && bytes <= expected + small; };
    CHECK(near(bytes_of(size, adasum::schedules::all_to_all{}, rule, false), 2 * each));
    CHECK(near(bytes_of(size, adasum::schedules::all_to_all{}, rule, true), each));
    CHECK(near(bytes_of(size, adasum::schedules::recursive_halving{}, rule, false), 2 * each));
    const double halving = bytes_of(size, adasum::schedules::recursive_halving{}, rule, true);
    CHECK(halving >= each);
    CHECK(halving <= each + elements + small);  // each element is then sent to where it belongs, if it is not there
  }
}

TEST_CASE("the bytes where one rank gets all: N elements from each but that one, which sends its part only once") {
  constexpr std::size_t length = 120'000;
  for (const int size : {2, 4, 8}) {
    std::vector<std::size_t> lengths(static_cast<std::size_t>(size));
    lengths.front() = length;
    const auto sent = results_of(on_ranks(size, [&](const adasum::thread_communicator& comm) {
      std::vector<float> mine(length, static_cast<float>(comm.rank() + 1));
      return adasum::adasum_reduce_scatter(exec, comm, mine, adasum::parts(lengths), adasum::schedules::all_to_all{})
          .bytes_sent();
    }));
    const double elements = 4.0 * length, small = 64 * size * 40;
    for (std::size_t r = 0; r < sent.size(); ++r) {
      const double expected = r == 0 ? elements * (size - 1) / size : elements;
      CHECK(static_cast<double>(sent[r]) >= expected);
      CHECK(static_cast<double>(sent[r]) <= expected + small);
    }
  }
}

TEST_CASE("plans: moved, empty, their members") {
  adasum::reduce_scatter_plan<float, adasum::serial_space, adasum::self_communicator> plan;
  CHECK(plan.is_empty());
  std::vector<float> gradient{1, 2, 3};
  CHECK_THROWS_WITH_AS(plan(gradient),
                       "adasum::reduce_scatter_plan::operator(): the plan is empty; plan_reduce_scatter makes one",
                       adasum::bad_input);
  CHECK_THROWS_AS(static_cast<void>(plan.part()), adasum::bad_input);
  plan = adasum::plan_reduce_scatter<float>(exec, adasum::self_communicator{}, 3);
  CHECK(!plan.is_empty());
  CHECK(plan.part() == adasum::index_range{0, 3});
  CHECK(plan.length() == 3);
  CHECK(plan.segments().size() == 1);
  plan(gradient);
  CHECK(gradient == std::vector<float>{1, 2, 3});
  CHECK(plan.last_report().contributions() == 1);
  CHECK_THROWS_WITH_AS(plan.wait(), "adasum::reduce_scatter_plan::wait: no reduction is in flight; call start() first",
                       adasum::bad_input);
  gradient.push_back(4);
  CHECK_THROWS_WITH_AS(plan(gradient), doctest::Contains("adasum::reduce_scatter_plan"), adasum::bad_input);
}

}  // namespace test_of_reduce_scatter
