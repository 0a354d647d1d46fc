// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <adasum/adasum.hpp>
#include <adasum/detail/numerics/combine_window.hpp>

#include "support/disagreements.hpp"
#include "support/played_plans.hpp"
#include "support/random_gradients.hpp"
#include "support/sizes.hpp"
#include "support/thread_reduction.hpp"

namespace test_of_detail_engine_recombination {

/// Segments that inner products cannot decide, combined vector by vector in the middle of a run: how many sums that
/// takes depends on the gradients.

using namespace adasum::test;

namespace {

const adasum::segments segs{9, 0, 12, 5, 7, 3};

/// Segment 2 has squares beyond double, in segment 3 the gradients of two neighbours are opposed, in segment 4 those of
/// one rank are far smaller than the others'.
std::vector<std::vector<double>> gradients_of(int size) {
  auto gradients = random_gradients<double>(static_cast<std::size_t>(size), segs.total(), 41);
  for (std::size_t r = 0; r < gradients.size(); ++r) {
    auto& gradient = gradients[r];
    for (auto x = segs.offset(2); x < segs.offset(3); ++x) gradient[x] *= 1e170;
    if (r % 2 == 1)
      for (auto x = segs.offset(3); x < segs.offset(4); ++x) gradient[x] = -gradients[r - 1][x];
    if (r == 0)
      for (auto x = segs.offset(4); x < segs.offset(5); ++x) gradient[x] *= 1e-190;
  }
  return gradients;
}

}  // namespace

TEST_CASE("test() never blocks while segments are recombined, and the bits are those of the blocking call") {
  for (const int size : {1, 2, 3, 4, 5, 8})
    for_each_schedule([&](const auto& order, const std::string& name) {
      CAPTURE(size);
      CAPTURE(name);
      const auto inputs = gradients_of(size);
      const auto expected = reduce_on_threads<double>(inputs, segs, adasum::rules::adasum{}, order, unchecked);
      for (const std::uint64_t seed : {1u, 2u, 3u}) {
        auto plans = plans_of<double>(size, segs, order, unchecked);
        auto gradients = inputs;
        play(plans, seed, gradients);
        std::size_t recombined = 0;  // a rank that waits for the result recombines nothing
        for (std::size_t r = 0; r < plans.size(); ++r) {
          recombined += plans[r].wait().recombined_segments();
          CHECK(same_bits(gradients[r], expected[r].gradient));
        }
        CHECK(recombined > 0);
      }
    });
}

TEST_CASE("a rank that is held back in any of its turns: the others' test() returns all the same") {
  for_each_schedule([&](const auto& order, const std::string& name) {
    for (const int size : {2, 4, 5})
      for (std::size_t held = 0; held < static_cast<std::size_t>(size); ++held)
        for (std::size_t turns_before = 0, ended_before = 0; ended_before == 0; ++turns_before) {
          CAPTURE(name);
          CAPTURE(size);
          CAPTURE(held);
          CAPTURE(turns_before);
          auto plans = plans_of<double>(size, segs, order, unchecked);
          auto gradients = gradients_of(size);
          for (std::size_t r = 0; r < plans.size(); ++r) plans[r].start(gradients[r]);
          const auto test_others = [&] {
            for (std::size_t r = 0; r < plans.size(); ++r)
              if (r != held) plans[r].test();
          };
          for (std::size_t turn = 0; turn < turns_before; ++turn) {
            test_others();
            ended_before += plans[held].test();
          }
          for (int turn = 0; turn < 50; ++turn) test_others();  // a call that waits would hang here
          test_in_turn(plans);
          for (auto& plan : plans) CHECK_NOTHROW(plan.wait());
          for (const auto& gradient : gradients) CHECK(same_bits(gradient, gradients.front()));
        }
  });
}

TEST_CASE("a plan that is destroyed at any time of a recombination: the others are told, and go on") {
  for_each_schedule([&](const auto& order, const std::string& name) {
    for (const int size : few_or_all({2, 5}, {2, 3, 4, 5}))
      for (int culprit = 0; culprit < size; ++culprit)
        for (int tests = 0; tests < 24; tests += 1 + tests / 4) {
          CAPTURE(name);
          CAPTURE(size);
          CAPTURE(culprit);
          CAPTURE(tests);
          const auto inputs = gradients_of(size);
          const auto ranks = on_ranks(size, [&](const adasum::thread_communicator& comm) {
            auto mine = inputs[static_cast<std::size_t>(comm.rank())];
            auto plan = adasum::plan_allreduce<double>(adasum::serial_space{}, comm, segs, order, unchecked);
            const auto end = end_of(mine, [&](auto& gradient) {
              plan.start(gradient);
              if (comm.rank() == culprit) {
                for (int i = 0; i < tests; ++i) plan.test();
                plan = {};
              } else {
                plan.wait();
              }
            });
            // On the same communicator, what follows is right.
            auto again = inputs[static_cast<std::size_t>(comm.rank())];
            adasum::adasum_allreduce(adasum::serial_space{}, comm, again, segs, unchecked);
            return std::pair(end, again);
          });
          for (std::size_t r = 0; r < ranks.size(); ++r) {
            REQUIRE_MESSAGE(ranks[r].value, "rank ", r, " ", ranks[r].description());
            const auto& end = ranks[r].value->first;
            const auto& again = ranks[r].value->second;
            const bool told = end.how == way::returned || end.how == way::communication_error;
            CHECK_MESSAGE(told, to_string(end.how), ": ", end.message);
            CHECK(same_bits(again, ranks.front().value->second));
          }
        }
  });
}

TEST_CASE("more opposed segments than a run may have barriers are recombined in place") {
  // In shared memory, a rank can tell 2^20 barriers of one run apart. Along the tree of four ranks, a segment by itself
  // would take four sums, each with a barrier: one for each of three pairs, one for the root. (Instrumented, this many
  // would take gigabytes.)
#ifdef ADASUM_TEST_SANITIZED
  constexpr std::size_t count = 4096;
#else
  constexpr std::size_t count = (std::size_t{1} << 20) / 4 + 1;
#endif
  const adasum::segments many(std::vector<std::size_t>(count, 2));
  const auto element = [](int rank, std::size_t x) {
    const double a = 1 + static_cast<double>(x % 1000), b = static_cast<double>(x % 7) - 3;
    return rank == 0 ? a : rank == 1 ? -a : rank == 2 ? b : 0.0;
  };
  const auto ranks = on_ranks(4, [&](const adasum::thread_communicator& comm) {
    auto plan = adasum::plan_allreduce<double>(adasum::serial_space{}, comm, many, adasum::schedules::shared_memory{},
                                               unchecked);
    const auto gradient = plan.buffer();
    for (std::size_t x = 0; x < gradient.size(); ++x) gradient[x] = element(comm.rank(), x);
    const auto& found = plan();
    std::size_t wrong = 0;  // the first two cancel, the fourth is zero
    for (std::size_t x = 0; x < gradient.size(); ++x) wrong += gradient[x] != element(2, x);
    return std::pair(wrong, found.recombined_segments());
  });
  for (const auto& rank : ranks) {
    REQUIRE_MESSAGE(rank.value, rank.description());
    CHECK(rank.value->first == 0);
    CHECK(rank.value->second == count);
  }
}

namespace {

/// rules::adasum that throws on one rank, where the others find that vectors cancel.
struct fails_on_one_rank {
  static constexpr std::string_view name = "fails_on_one_rank";
  bool fails;
  bool when_opposed;
  adasum::pair_weights operator()(const adasum::pair_gram& g) const {
    if (fails && (!when_opposed || g.ab < -0.9 * std::sqrt(g.aa) * std::sqrt(g.bb))) throw failure("the rule failed");
    return adasum::rules::adasum{}(g);
  }
};

}  // namespace

TEST_CASE("a rule that throws on one rank, where the others go on to recombine: all of them are told") {
  // By messages, in shared memory with a copy for each rank, and in place.
  for (const auto& cut : {segs, adasum::segments{9, 0, 12, 5, 3000, 3}})
    for (const bool when_opposed : {true, false})
      for_each_schedule([&](const auto& order, const std::string& name) {
        for (const int size : {2, 3, 4, 5})
          for (int culprit = 0; culprit < size; ++culprit) {
            case_under_test() = name + ", rank " + std::to_string(culprit) + " of " + std::to_string(size);
            CAPTURE(case_under_test());
            auto inputs = random_gradients<float>(static_cast<std::size_t>(size), cut.total(), 43);
            for (std::size_t r = 1; r < inputs.size(); r += 2)
              for (auto x = cut.offset(3); x < cut.offset(4); ++x) inputs[r][x] = -inputs[r - 1][x];
            const auto ranks = on_ranks(size, [&](const adasum::thread_communicator& comm) {
              const auto& mine = inputs[static_cast<std::size_t>(comm.rank())];
              const fails_on_one_rank rule{comm.rank() == culprit, when_opposed};
              auto plan = adasum::plan_allreduce<float>(adasum::serial_space{}, comm, cut, rule, order, unchecked);
              const auto end = end_of(mine, [&](auto& gradient) { plan(gradient); });
              plan.current_rule().fails = false;
              auto again = mine;
              plan(again);
              return std::pair(end, again);
            });
            for (std::size_t r = 0; r < ranks.size(); ++r) {
              REQUIRE_MESSAGE(ranks[r].value, "rank ", r, " ", ranks[r].description());
              const auto& [end, again] = *ranks[r].value;
              CHECK(same_bits(again, ranks.front().value->second));
              if (static_cast<int>(r) == culprit)
                CHECK((end.how == way::other || end.how == way::returned));  // it need not weigh at all
              else
                CHECK((end.how == way::communication_error || end.how == way::returned));
            }
          }
      });
}

namespace {

/// A mean of what is finite, that throws on one rank.
struct finite_mean {
  static constexpr std::string_view name = "finite_mean";
  static constexpr bool leaves_out_nonfinite = true;
  bool fails;
  void operator()(adasum::gram_view gram, std::span<double> weights) const {
    if (fails) throw failure("the rule failed");
    std::ranges::fill(weights, 1 / static_cast<double>(gram.size()));
  }
};

}  // namespace

TEST_CASE("a rule that leaves out what is not finite throws on one rank: it does not recombine alone") {
  const auto ranks = on_ranks(3, [&](const adasum::thread_communicator& comm) {
    const std::vector<float> mine(20, comm.rank() == 2 ? std::numeric_limits<float>::infinity() : 3.0f);
    auto plan = adasum::plan_allreduce<float>(adasum::serial_space{}, comm, 20, finite_mean{comm.rank() == 1},
                                              adasum::schedules::all_to_all{}, unchecked);
    const auto end = end_of(mine, [&](auto& gradient) { plan(gradient); });
    plan.current_rule().fails = false;
    auto again = mine;
    plan(again);
    return std::pair(end.how, again);
  });
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    REQUIRE_MESSAGE(ranks[r].value, "rank ", r, " ", ranks[r].description());
    CHECK(ranks[r].value->first == (r == 1 ? way::other : way::communication_error));
    CHECK(ranks[r].value->second == std::vector<float>(20, 3.0f));
  }
}

TEST_CASE("whether weights exist under which vectors cancel") {
  using adasum::detail::can_cancel;
  std::vector<double> room(adasum::packed_size(3));
  const auto of = [&](std::vector<double> packed, std::size_t n) {
    return can_cancel({packed.data(), n}, 1e-10, room);
  };
  CHECK_FALSE(of({4}, 1));
  CHECK_FALSE(of({4, 5.9, 9}, 2));
  CHECK(of({4, 6, 9}, 2));
  CHECK(of({4, -6, 9}, 2));
  CHECK(of({1, 1 - 1e-11, 1}, 2));
  CHECK_FALSE(of({1, 1 - 1e-9, 1}, 2));
  CHECK_FALSE(of({0, 0, 9}, 2));     // one takes no part
  CHECK(of({1, 0, 1, 1, 1, 2}, 3));  // the third is the sum of the others
  CHECK_FALSE(of({1, 0, 1, 1, 1, 2.1}, 3));
  CHECK_FALSE(of({1e-200, 0, 1e200}, 2));
}

}  // namespace test_of_detail_engine_recombination
