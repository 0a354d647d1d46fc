// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <initializer_list>
#include <limits>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include <adasum/adasum.hpp>
#include <adasum/communicators/mpi.hpp>

#include "support/bits.hpp"
#include "support/hierarchical_formula.hpp"
#include "support/mpi_world.hpp"
#include "support/random_gradients.hpp"
#include "support/reduction.hpp"
#include "support/schedules.hpp"
#include "support/thread_reduction.hpp"

/// Ranks on several nodes, which share memory only within a node (scripts/cluster). ADASUM_TEST_NODES says where the
/// ranks should be: "0 0 1" for two on node0 and one on node1.

using namespace adasum::test;

namespace {

const adasum::serial_space exec;

std::vector<int> expected_nodes() {
  const char* const text = std::getenv("ADASUM_TEST_NODES");
  REQUIRE(text != nullptr);
  std::istringstream words(text);
  std::vector<int> nodes;
  for (int node = 0; words >> node;) nodes.push_back(node);
  return nodes;
}

struct sample {
  adasum::segments segs;
  std::vector<std::vector<float>> gradients;  // of all ranks, on every rank
};

/// Gradients at all angles, in one segment, two, three and so on.
std::vector<sample> samples(int ranks, std::initializer_list<std::size_t> lengths) {
  std::vector<sample> all;
  for (const std::size_t length : lengths) {
    const auto turn = all.size();
    all.push_back({adasum::segments(random_segments(length, 1 + turn, turn)),
                   random_gradients<float>(static_cast<std::size_t>(ranks), length, turn,
                                           all_gradient_kinds[turn % all_gradient_kinds.size()])});
  }
  return all;
}

/// Longer than what Open MPI sends by TCP without asking the receiver first (64 KiB), in any slice of eight ranks.
constexpr std::size_t long_length = 150'001;

const std::vector<float>& own(const std::vector<std::vector<float>>& gradients) {
  return gradients[static_cast<std::size_t>(world_rank())];
}

/// A single call, a plan on the caller's gradient, and a plan in its own buffer: what the first run of each gives is
/// checked, and further runs must give the same bits.
template <class Rule, class Schedule, class Check>
void reduce_in_all_ways(const adasum::mpi_communicator& comm, const sample& given, const Rule& rule,
                        const Schedule& order, const Check& check) {
  reduced<float> got{own(given.gradients), {}};
  CHECK_NOTHROW(got.found = adasum::combine_allreduce(exec, comm, got.gradient, rule, given.segs, order));
  CHECK(same_on_all_ranks(got.gradient));
  check(got);

  auto plan = adasum::plan_allreduce<float>(exec, comm, given.segs, rule, order);
  const auto check_runs = [&](const auto& run) {
    const reduced<float> first = run();
    CHECK(same_on_all_ranks(first.gradient));
    check(first);
    for (int again = 0; again < 2; ++again) CHECK(same_bits(run().gradient, first.gradient));
  };
  check_runs([&] {
    reduced<float> one{own(given.gradients), {}};
    one.found = plan(one.gradient);
    return one;
  });
  check_runs([&] {
    const auto buffer = plan.buffer();
    std::ranges::copy(own(given.gradients), buffer.begin());
    const auto found = plan();
    return reduced<float>{{buffer.begin(), buffer.end()}, found};
  });
}

template <class Rule>
void check_pairwise(const Rule& rule, std::initializer_list<std::size_t> lengths) {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  for (const auto& given : samples(comm.size(), lengths)) {
    CAPTURE(given.segs.total());
    const auto expected = expectation::of<float>(rule, given.gradients, given.segs);
    for_each_message_schedule([&](const auto& order, const std::string& name) {
      if (name == "automatic") return;  // along another tree: below
      CAPTURE(name);
      reduce_in_all_ways(comm, given, rule, order, [&](const reduced<float>& got) {
        check_reduced(got, expected, given.segs);
        CHECK(got.found.schedule() != "shared_memory");
      });
    });
  }
}

}  // namespace

TEST_CASE("each rank is on its node, and shares memory with the ranks of that node alone") {
  const auto nodes = expected_nodes();
  REQUIRE(nodes.size() == static_cast<std::size_t>(world_size()));
  char name[MPI_MAX_PROCESSOR_NAME];
  int length = 0;
  MPI_Get_processor_name(name, &length);
  CHECK(std::string(name) == "node" + std::to_string(nodes[static_cast<std::size_t>(world_rank())]));

  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  std::vector<int> lowest, mates;
  for (int rank = 0; rank < comm.size(); ++rank) {
    const int node = nodes[static_cast<std::size_t>(rank)];
    lowest.push_back(static_cast<int>(std::ranges::find(nodes, node) - nodes.begin()));
    if (node == nodes[static_cast<std::size_t>(world_rank())]) mates.push_back(rank);
  }
  CHECK(comm.nodes() == lowest);
  const auto memory = comm.share(64);
  CHECK(std::vector<int>(memory.ranks().begin(), memory.ranks().end()) == mates);
}

TEST_CASE("every schedule: adasum") { check_pairwise(adasum::rules::adasum{}, {1, 77, 5003}); }

TEST_CASE("every schedule: mean") { check_pairwise(adasum::rules::mean{}, {77, 1000}); }

TEST_CASE("every schedule: a long gradient") {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  const auto given = samples(comm.size(), {long_length}).front();
  const auto expected = expectation::of<float>(adasum::rules::adasum{}, given.gradients, given.segs);
  for_each_message_schedule([&](const auto& order, const std::string& name) {
    if (name == "automatic") return;
    CAPTURE(name);
    auto gradient = own(given.gradients);
    adasum::adasum_allreduce(exec, comm, gradient, given.segs, order);
    CHECK(worst_error_over_bound(gradient, expected.exact.values, expected.bounds, given.segs) <= 1);
    CHECK(same_on_all_ranks(gradient));
  });
}

TEST_CASE("the default follows the nodes; adasum_tree_by_node on one rank computes the same") {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  const adasum::node_groups nodes(comm.nodes());
  for (const std::size_t length : {std::size_t{77}, std::size_t{5003}, long_length}) {
    CAPTURE(length);
    const sample given{adasum::segments{length / 3, 0, length - length / 3},
                       random_gradients<float>(static_cast<std::size_t>(comm.size()), length, length)};
    std::vector<std::vector<double>> wide;
    for (const auto& gradient : given.gradients) wide.emplace_back(gradient.begin(), gradient.end());
    std::vector<double> expected(length);
    adasum::adasum_tree_by_node(exec, wide, nodes, expected, given.segs);
    const bool by_node = nodes.size() > 1 && nodes.size() < given.gradients.size();
    reduce_in_all_ways(comm, given, adasum::rules::adasum{}, adasum::schedules::automatic{},
                       [&](const reduced<float>& got) {
                         check_close<float>(given.segs, got.gradient, expected, given.gradients);
                         CHECK((got.found.schedule() == "hierarchical") == by_node);
                       });
  }
}

TEST_CASE("with no regard to nodes: the bits that ranks of one process get, wherever ranks are") {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  const adasum::schedules::automatic anywhere{.follows_nodes = false};
  for (const auto& given : samples(comm.size(), {1, 77, 300, 2'047, 2'049, 5'003, 20'011, long_length})) {
    CAPTURE(given.segs.total());
    const auto in_one_process =
        reduce_on_threads<float>(given.gradients, given.segs, adasum::rules::adasum{}, anywhere).front().gradient;
    reduce_in_all_ways(comm, given, adasum::rules::adasum{}, anywhere,
                       [&](const reduced<float>& got) { CHECK(same_bits(got.gradient, in_one_process)); });
  }
}

TEST_CASE("a rule that looks at all inner products") {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  const adasum::rules::unit_mean rule;
  for (const std::size_t length : {77u, 5003u}) {
    const sample given{adasum::segments{length / 3, 0, length - length / 3},
                       random_gradients<float>(static_cast<std::size_t>(comm.size()), length, length)};
    std::vector<std::vector<double>> wide;
    for (const auto& gradient : given.gradients) wide.emplace_back(gradient.begin(), gradient.end());
    std::vector<double> expected(length);
    adasum::combine(exec, wide, expected, rule, given.segs);
    const auto check = [&](const reduced<float>& got) {
      check_close<float>(given.segs, got.gradient, expected, given.gradients);
    };
    reduce_in_all_ways(comm, given, rule, adasum::schedules::all_to_all{}, check);
    reduce_in_all_ways(comm, given, rule, adasum::schedules::automatic{}, check);
  }
}

TEST_CASE("hierarchical by the nodes that MPI sees: one rule inside them, another across") {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  const auto nodes = comm.nodes();
  for (const std::size_t length : {77u, 20011u}) {
    const sample given{adasum::segments{length / 3, 0, length - length / 3},
                       random_gradients<float>(static_cast<std::size_t>(comm.size()), length, length)};
    const auto with = [&](const auto& inner, const auto& rule, const auto& outer) {
      CAPTURE(length);
      const auto expected = hierarchical_formula(given.segs, nodes, inner, rule, given.gradients);
      reduce_in_all_ways(comm, given, rule, adasum::schedules::hierarchical{nodes, inner, outer},
                         [&](const reduced<float>& got) {
                           check_close<float>(given.segs, got.gradient, expected, given.gradients);
                           CHECK(got.found.schedule() == "hierarchical");
                         });
    };
    using namespace adasum::rules;
    with(mean{}, adasum::rules::adasum{}, adasum::schedules::automatic{});
    with(adasum::rules::adasum{}, adasum::rules::adasum{}, adasum::schedules::recursive_halving{});
    with(unit_mean{}, adasum::rules::adasum{}, adasum::schedules::recursive_doubling{});
    with(mean{}, unit_mean{}, adasum::schedules::all_to_all{});
  }
}

TEST_CASE("messages of 16 bits") {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  const auto given = samples(comm.size(), {5003}).front();
  for_each_message_schedule([&](const auto& order, const std::string& name) {
    CAPTURE(name);
    auto gradient = own(given.gradients);
    CHECK_NOTHROW(
        adasum::adasum_allreduce(exec, comm, gradient, given.segs, order, {.wire = adasum::wire_format::bfloat16}));
    CHECK(same_on_all_ranks(gradient));
  });
}

TEST_CASE("what one rank does wrong, all ranks are told, on whatever node") {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  const adasum::segments segs{100, 28};
  const auto gradients = random_gradients<float>(static_cast<std::size_t>(comm.size()), segs.total(), 3);
  for (const int culprit : {0, comm.size() - 1}) {
    auto gradient = own(gradients);
    if (comm.rank() == culprit) gradient[5] = std::numeric_limits<float>::quiet_NaN();
    const auto before = gradient;
    CHECK_THROWS_AS(
        adasum::adasum_allreduce(exec, comm, gradient, segs, {.nonfinite = adasum::nonfinite_policy::raise}),
        adasum::nonfinite_error);
    CHECK(std::ranges::equal(std::as_bytes(std::span(gradient)), std::as_bytes(std::span(before))));

    gradient = own(gradients);
    gradient.resize(comm.rank() == culprit ? 100 : 128);
    CHECK_THROWS_AS(adasum::adasum_allreduce(exec, comm, gradient, {.check_agreement = true}), adasum::agreement_error);
  }
}

TEST_CASE("a schedule that needs the memory of all ranks is refused on all of them, in one line") {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  std::vector<float> gradient(100, 1);
  for (const bool checked : {false, true}) {
    adasum::options choices;
    choices.check_agreement = checked;
    CHECK_THROWS_AS(
        adasum::plan_allreduce<float>(exec, comm, gradient.size(), adasum::schedules::shared_memory{}, choices),
        adasum::error);
    CHECK_THROWS_AS(adasum::adasum_allreduce(exec, comm, gradient, adasum::schedules::shared_memory{}, choices),
                    adasum::error);
  }
}
