// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/detail/collective/run_of_sums.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <adasum/allreduce.hpp>
#include <adasum/rules/adacons.hpp>
#include <adasum/rules/unit_mean.hpp>
#include <adasum/schedule/automatic.hpp>
#include <adasum/schedule/cost.hpp>

#include "support/allocations.hpp"
#include "support/random_gradients.hpp"
#include "support/rule_checks.hpp"
#include "support/staged_reduction.hpp"

namespace test_of_detail_collective_run_of_sums {

/// Rules of norms and row sums along stages of several schedules, on threads: against the Gram matrix of one process.

using namespace adasum;
using namespace adasum::test;

namespace {

/// The result is that of combine() on one process, over several runs of a rule with state.
template <class Rule>
void check_against_gram(const Rule& rule) {
  CAPTURE(std::string(Rule::name));
  const segments segs{7, 0, 13, 60};
  for (const int size : staged_rank_counts)
    for (const std::size_t radix : {0u, 2u, 4u}) {
      CAPTURE(size);
      CAPTURE(radix);
      const auto gradients = [&](std::uint64_t run) {
        return random_gradients<double>(static_cast<std::size_t>(size), 80, run);
      };
      const auto ranks = reduce<double>(size, segs, rule, radix, gradients, {}, 3);
      check_same_on_all_ranks(ranks);
      Rule alone(rule);
      vec expected(80);
      report report_alone;
      for (std::uint64_t run = 0; run < 3; ++run)
        report_alone = combine(serial_space{}, gradients(run), expected, alone, segs);
      CHECK(distance(ranks[0].gradient, expected) <= 1e-11 * norm_of(expected));
      const auto& found = ranks[0].found;
      CHECK(found.measured());
      CHECK(found.fallbacks() == report_alone.fallbacks());
      for (std::size_t k = 0; k < segs.size(); ++k) {
        CHECK(found.result_norm(k) == doctest::Approx(report_alone.result_norm(k)).epsilon(1e-10));
        for (std::size_t i = 0; i < found.contributions(); ++i) {
          CHECK(found.norm(i, k) == doctest::Approx(report_alone.norm(i, k)).epsilon(1e-13));
          CHECK(found.weight(i, k) == doctest::Approx(report_alone.weight(i, k)).epsilon(1e-9));
        }
      }
    }
}

}  // namespace

TEST_CASE("the result and the report are those of the Gram matrix") {
  check_against_gram(rules::adacons{.momentum = 0.5});
  check_against_gram(rules::adacons{.scale = rules::adacons::scaling::mean_norm, .per_segment = true});
  check_against_gram(rules::unit_mean{});
}

TEST_CASE("what is sent is what the model counts: two sums of vectors, one for norms alone") {
  const segments segs{500, 0, 700, 2000};
  const auto check = [&](const auto& rule, std::size_t sums) {
    for (const int size : staged_rank_counts)
      for (const std::size_t radix : {0u, 2u, 4u}) {
        const schedule_input what{.length = 3200, .element_size = 8, .segments = 4, .along_tree = false, .sums = sums};
        const auto gradients = random_gradients<double>(static_cast<std::size_t>(size), 3200, 1);
        const auto ranks = reduce<double>(size, segs, rule, radix, [&](std::uint64_t) { return gradients; },
                                          {.check_agreement = false});
        for (int rank = 0; rank < size; ++rank) {
          CAPTURE(size);
          CAPTURE(radix);
          CAPTURE(rank);
          const auto counted = schedules::cost_of(staged{radix}, rank, size, what);
          CHECK(ranks[static_cast<std::size_t>(rank)].found.bytes_sent() == counted.bytes);
        }
      }
  };
  check(rules::adacons{.per_segment = true}, 2);
  check(rules::unit_mean{}, 1);
  // Halving among powers of two: 2 (P - 1)/P · N elements in a sum.
  const schedule_input what{.length = 4096, .element_size = 4, .along_tree = false, .sums = 2};
  CHECK(schedules::cost_of(schedules::recursive_halving{}, 3, 64, what).elements == 2 * 2 * 63 * 4096 / 64);
}

namespace {

/// By the default schedule: which one it is, what was sent, and the result of one process.
template <class Rule>
void check_default_schedule(int size, const segments& segs, const Rule& rule, std::size_t sums,
                            std::string_view expected_schedule) {
  CAPTURE(std::string(Rule::name));
  CAPTURE(size);
  const auto gradients = random_gradients<double>(static_cast<std::size_t>(size), segs.total(), 5);
  vec expected(segs.total());
  Rule alone(rule);
  combine(serial_space{}, gradients, expected, alone, segs);
  const schedule_input what{.length = segs.total(),
                            .element_size = sizeof(double),
                            .segments = segs.size(),
                            .along_tree = false,
                            .sums = sums};
  // The model counts a projection for each segment, also where one does for the whole model.
  const std::size_t projections_saved = detail::weighs_whole_model(rule) ? segs.size() - 1 : 0;
  const std::size_t saved = 8 * projections_saved * static_cast<std::size_t>(size - 1);
  const options lean{.check_agreement = false};
  const auto check = [&](const std::vector<reduced<double>>& ranks) {
    check_same_on_all_ranks(ranks);
    CHECK(distance(ranks[0].gradient, expected) <= 1e-11 * norm_of(expected));
    for (int rank = 0; rank < size; ++rank) {
      const auto& found = ranks[static_cast<std::size_t>(rank)].found;
      CHECK(found.schedule() == expected_schedule);
      CHECK(found.bytes_sent() + saved == schedules::cost_of(schedules::automatic{}, rank, size, what).bytes);
    }
  };
  check(results_of(on_ranks(size, [&](const thread_communicator& comm) {
    auto mine = gradients[static_cast<std::size_t>(comm.rank())];
    auto found = combine_allreduce(serial_space{}, comm, mine, segs, rule, lean);
    return reduced<double>{std::move(mine), std::move(found)};
  })));
  check(results_of(on_ranks(size, [&](const thread_communicator& comm) {
    auto mine = gradients[static_cast<std::size_t>(comm.rank())];
    auto plan = plan_allreduce<double>(serial_space{}, comm, segs, rule, lean);
    plan.start(mine);
    while (!plan.test()) std::this_thread::yield();
    auto found = plan.wait();
    return reduced<double>{std::move(mine), std::move(found)};
  })));
}

}  // namespace

TEST_CASE("by the default schedule, where it takes sums of vectors: a single call and a plan") {
  const segments few_elements(std::vector<int>(300, 2)), more(std::vector<int>(300, 13));
  const rules::adacons whole{.momentum = 0.5}, each{.per_segment = true};
  check_default_schedule(4, few_elements, whole, 2, "recursive_doubling");
  check_default_schedule(6, few_elements, each, 2, "recursive_doubling");
  check_default_schedule(8, more, whole, 2, "recursive_halving");
  check_default_schedule(8, more, each, 2, "recursive_halving");
  check_default_schedule(8, more, rules::unit_mean{}, 1, "recursive_halving");
  check_default_schedule(6, few_elements, rules::unit_mean{}, 1, "recursive_doubling");
}

TEST_CASE("a gradient that is not finite: propagated, left out, or refused") {
  const segments segs{5, 5};
  for (const int size : {3, 4, 5, 6, 8})
    for (const std::size_t radix : {0u, 2u}) {
      CAPTURE(size);
      CAPTURE(radix);
      auto gradients = random_gradients<double>(static_cast<std::size_t>(size), 10, 4);
      auto others = gradients;
      others.erase(others.begin() + 1);
      gradients[1][2] = std::numeric_limits<double>::quiet_NaN();
      gradients[1][7] = std::numeric_limits<double>::infinity();
      const auto same = [&](std::uint64_t) { return gradients; };
      const rules::adacons rule{.per_segment = true};

      gradients[1][7] = 1;
      const auto spread = reduce<double>(size, segs, rule, radix, same);
      check_same_on_all_ranks(spread);
      for (std::size_t x = 0; x < 10; ++x) CHECK(std::isnan(spread[0].gradient[x]) == (x < 5));
      CHECK(spread[0].found.nonfinite() == std::vector<nonfinite_input>{{1, 0}});

      gradients[1][7] = std::numeric_limits<double>::infinity();
      const auto left_out = reduce<double>(size, segs, rule, radix, same, {.nonfinite = nonfinite_policy::exclude});
      check_same_on_all_ranks(left_out);
      vec expected(10);
      combine(serial_space{}, others, expected, rule, segs);
      CHECK(distance(left_out[0].gradient, expected) <= 1e-12 * norm_of(expected));
      CHECK(left_out[0].found.excluded() == std::vector<int>{1});
      CHECK(left_out[0].found.weight(1, 0) == 0);
      CHECK(std::isinf(left_out[0].found.norm(1, 0)));

      for (auto& gradient : gradients) gradient[0] = std::numeric_limits<double>::quiet_NaN();
      const auto nobody = reduce<double>(size, segs, rule, radix, same, {.nonfinite = nonfinite_policy::exclude});
      CHECK(nobody[0].gradient == vec(10, 0));

      const auto refused = on_ranks(size, [&](const thread_communicator& comm) {
        auto mine = gradients[static_cast<std::size_t>(comm.rank())];
        auto plan = plan_allreduce<double>(serial_space{}, comm, segs, rule, staged{radix},
                                           options{.nonfinite = nonfinite_policy::raise});
        plan(mine);
        return 0;
      });
      for (const auto& rank : refused) CHECK(rank.threw<nonfinite_error>());
    }
}

TEST_CASE("16-bit messages: the same bits on all ranks") {
  for (const std::size_t radix : {0u, 2u}) {
    const auto gradients = random_gradients<float>(6, 500, 9);
    const auto same = [&](std::uint64_t) { return gradients; };
    const auto exact = reduce<float>(6, segments{500}, rules::adacons{}, radix, same);
    const auto rounded =
        reduce<float>(6, segments{500}, rules::adacons{}, radix, same, {.wire = wire_format::bfloat16});
    check_same_on_all_ranks(rounded);
    CHECK(exact[0].found.wire() == wire_format::same);
    CHECK(rounded[0].found.wire() == wire_format::bfloat16);
    vec a(exact[0].gradient.begin(), exact[0].gradient.end()),
        b(rounded[0].gradient.begin(), rounded[0].gradient.end());
    CHECK(distance(a, b) <= 0.05 * norm_of(a));
    CHECK(distance(a, b) > 0);
  }
}

TEST_CASE("measured when needed only: the result's norm is not known") {
  const auto gradients = random_gradients<double>(6, 9, 9);
  const auto ranks = reduce<double>(6, segments{9}, rules::adacons{}, 2, [&](std::uint64_t) { return gradients; },
                                    {.measure = measuring::when_needed});
  CHECK(std::isnan(ranks[0].found.result_norm(0)));
  CHECK(ranks[0].found.norm(2, 0) == doctest::Approx(norm_of(gradients[2])));
}

namespace {

/// Throws on one rank, in its second run.
struct failing {
  static constexpr std::string_view name = "failing";
  bool fails = false;
  int runs = 0;
  void operator()(row_sums_view, std::span<double> weights) {
    if (++runs == 2 && fails) throw std::runtime_error("the rule fails here");
    for (double& weight : weights) weight = 0.25;
  }
};

}  // namespace

TEST_CASE("a rank whose rule throws, or whose gradient is wrong: the others throw, and the plan works again") {
  for (const int size : {4, 6, 8})
    for (const bool posts : {false, true})
      for (const bool compares : {false, true})
        for (int culprit = 0; culprit < size; ++culprit) {
          CAPTURE(size);
          CAPTURE(posts);
          CAPTURE(culprit);
          const auto gradients = random_gradients<double>(static_cast<std::size_t>(size), 40, 9);
          const auto ranks = on_ranks(size, [&](const thread_communicator& comm) {
            auto plan = plan_allreduce<double>(serial_space{}, comm, 40, failing{.fails = comm.rank() == culprit},
                                               staged{2}, options{.check_agreement = compares});
            const auto run = [&](std::size_t length) -> std::string {
              auto gradient = gradients[static_cast<std::size_t>(comm.rank())];
              gradient.resize(length);
              try {
                if (posts) {
                  plan.start(gradient);
                  while (!plan.test()) std::this_thread::yield();
                  plan.wait();
                } else {
                  plan(gradient);
                }
              } catch (const error& problem) {
                return "library";
              } catch (const std::runtime_error& problem) {
                return problem.what();
              }
              return {};
            };
            std::vector<std::string> endings;
            endings.push_back(run(40));
            endings.push_back(run(40));
            endings.push_back(run(comm.rank() == culprit ? 41 : 40));
            endings.push_back(run(40));
            return endings;
          });
          for (int rank = 0; rank < size; ++rank) {
            const auto& one = ranks[static_cast<std::size_t>(rank)];
            REQUIRE_MESSAGE(one.value, one.description());
            const std::vector<std::string> expected{"", rank == culprit ? "the rule fails here" : "library", "library",
                                                    ""};
            CHECK(*one.value == expected);
          }
        }
}

TEST_CASE("a plan destroyed in flight: nobody waits for it") {
  for (const int size : {6, 8})
    for (int culprit = 0; culprit < size; ++culprit)
      for (int tests = 0; tests < 4; ++tests) {
        const auto ranks = on_ranks(size, [&](const thread_communicator& comm) {
          vec gradient(40, 1.0 + comm.rank());
          auto plan = plan_allreduce<double>(serial_space{}, comm, 40, rules::adacons{}, staged{2});
          plan.start(gradient);
          if (comm.rank() == culprit) {
            for (int i = 0; i < tests; ++i) plan.test();
            return 0;
          }
          plan.wait();
          return 0;
        });
        for (int rank = 0; rank < size; ++rank) {
          const auto& one = ranks[static_cast<std::size_t>(rank)];
          CHECK_MESSAGE((rank == culprit ? one.value.has_value() : one.value || one.threw<communication_error>()),
                        one.description());
        }
      }
}

TEST_CASE("from the second run on, nothing is allocated") {
  const auto counts = results_of(on_ranks(6, [&](const thread_communicator& comm) {
    auto plan = plan_allreduce<double>(serial_space{}, comm, segments{20, 30}, rules::adacons{.per_segment = true},
                                       staged{2}, options{.check_agreement = false});
    vec gradient(50, 1);
    plan(gradient);
    for (double& x : gradient) x = 1 + comm.rank();
    const auto before = allocations();
    plan(gradient);
    return allocations() - before;
  }));
  for (const auto count : counts) CHECK(count == 0);
}

TEST_CASE("segments without elements, and fewer elements than ranks") {
  for (const auto& segs : {segments{}, segments{0}, segments{0, 1, 0}, segments{1, 1, 1}}) {
    const auto gradients = random_gradients<double>(9, segs.total(), 2);
    for (const bool per_segment : {false, true}) {
      const rules::adacons rule{.per_segment = per_segment};
      const auto ranks = reduce<double>(9, segs, rule, 2, [&](std::uint64_t) { return gradients; });
      check_same_on_all_ranks(ranks);
      vec expected(segs.total());
      combine(serial_space{}, gradients, expected, rule, segs);
      CHECK(distance(ranks[0].gradient, expected) <= 1e-12 * (1 + norm_of(expected)));
    }
  }
}

}  // namespace test_of_detail_collective_run_of_sums
