// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// threads_space among ranks that are threads, all of which share its workers: the bits of serial_space under every rule.
#include <adasum/adasum.hpp>
#include <adasum/exec/threads.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "support/bits.hpp"
#include "support/eager_threads.hpp"
#include "support/random_gradients.hpp"
#include "support/ranks.hpp"
#include "support/schedules.hpp"

namespace test_of_exec_threads_reductions {

using namespace adasum;
using namespace adasum::test;

namespace {

const segments cut{9000, 0, 3, 5000};
constexpr int ranks = 3;

/// Two runs of a plan and a single call on each rank.
template <class Rule, class Schedule, class Space>
std::vector<std::vector<std::vector<float>>> reduced_by(const Space& space, const Rule& rule, const Schedule& order) {
  const auto g = random_gradients<float>(ranks, cut.total(), 11);
  return results_of(on_ranks(ranks, [&](const thread_communicator& comm) {
    const auto& own = g[static_cast<std::size_t>(comm.rank())];
    std::vector<std::vector<float>> results(3, own);
    auto plan = plan_allreduce<float>(space, comm, cut, rule, order);
    plan(results[0]);
    plan(results[1]);
    combine_allreduce(space, comm, results[2], cut, rule, order);
    return results;
  }));
}

template <class Rule, class Schedule>
void check_as_serial(const Rule& rule, const Schedule& order) {
  CAPTURE(std::string(Rule::name));
  CAPTURE(std::string(Schedule::name));
  const auto expected = reduced_by(serial_space(), rule, order);
  const auto found = reduced_by(eager_threads(3), rule, order);
  for (std::size_t rank = 0; rank < found.size(); ++rank)
    for (std::size_t run = 0; run < found[rank].size(); ++run) CHECK(same_bits(found[rank][run], expected[rank][run]));
}

}  // namespace

TEST_CASE("adasum by every schedule") {
  for_each_schedule([](const auto& order, const std::string&) { check_as_serial(rules::adasum{}, order); });
}

TEST_CASE("every rule") {
  const schedules::automatic order;
  check_as_serial(rules::adasum_linear{}, order);
  check_as_serial(rules::mean{}, order);
  check_as_serial(rules::sum{}, order);
  check_as_serial(rules::unit_mean{}, order);
  check_as_serial(rules::pcgrad{.seed = 3}, order);
  check_as_serial(rules::gradvac{.beta = 0.5, .seed = 3}, order);
  check_as_serial(rules::geometric_median{}, order);
  check_as_serial(rules::gradient_agreement_filtering{.threshold = 1.2}, order);
  check_as_serial(rules::multi_krum{.byzantine = 0, .selected = 2}, order);
  check_as_serial(rules::nearest_neighbour_mixing<rules::mean>{.byzantine = 1}, order);
  for (const bool per_segment : {false, true}) {
    check_as_serial(rules::adacons{.momentum = 0.5, .per_segment = per_segment}, order);
    check_as_serial(rules::centred_clipping{.per_segment = per_segment}, order);
  }
}

TEST_CASE("single calls find their plan again, whichever object of as many threads they are given") {
  const auto results = results_of(on_ranks(2, [](const thread_communicator& comm) {
    std::vector<std::vector<float>> gradients(3, std::vector<float>(cut.total(), static_cast<float>(comm.rank() + 1)));
    for (auto& gradient : gradients) adasum_allreduce(threads_space(2), comm, gradient, cut);
    return gradients;
  }));
  for (const auto& rank : results)
    for (const auto& gradient : rank) CHECK(same_bits(gradient, results[0][0]));
}

}  // namespace test_of_exec_threads_reductions
