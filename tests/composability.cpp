// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <adasum/adasum.hpp>

#include "support/disagreements.hpp"
#include "support/minimal_types.hpp"
#include "support/random_gradients.hpp"
#include "support/thread_reduction.hpp"

namespace test_of_composability {

/// A communicator, schedules, rules and an execution space from outside of the library, together.

using namespace adasum::test;

namespace {

const adasum::segments segs{21, 0, 50, 3};

template <class Rule, class Schedule, class Space = adasum::serial_space>
std::vector<reduced<float>> reduce_by_mail(const std::vector<std::vector<float>>& gradients, const Rule& rule,
                                           const Schedule& order, const Space& space = {}) {
  const auto ranks = on_each(group_of<minimal_communicator>(static_cast<int>(gradients.size())), [&](const auto& comm) {
    auto gradient = gradients[static_cast<std::size_t>(comm.rank())];
    const auto found = adasum::combine_allreduce(space, comm, gradient, rule, segs, order, checked);
    return reduced<float>{gradient, found};
  });
  std::vector<reduced<float>> results;
  for (const auto& rank : ranks) {
    REQUIRE_MESSAGE(rank.value, rank.description());
    results.push_back(*rank.value);
  }
  check_same_on_all_ranks(results);
  return results;
}

/// The gradient of a segment with the largest norm, in double.
std::size_t index_of_longest(const std::vector<std::vector<float>>& gradients, std::size_t k) {
  std::size_t longest_one = 0;
  real longest_norm = -1;
  const auto leaves = oracle_leaves(gradients, adasum::segments_view(segs).range(k));
  for (std::size_t i = 0; i < leaves.size(); ++i)
    if (const real length = norm(leaves[i].value); length > longest_norm) {
      longest_norm = length;
      longest_one = i;
    }
  return longest_one;
}

void check_longest(const std::vector<std::vector<float>>& gradients, const reduced<float>& got) {
  for (const std::size_t k : {0u, 2u, 3u}) {
    const auto& chosen = gradients[index_of_longest(gradients, k)];
    for (std::size_t x = 0; x < segs.length(k); ++x)
      CHECK(got.gradient[segs.offset(k) + x] == chosen[segs.offset(k) + x]);
    CHECK(got.found.weight(index_of_longest(gradients, k), k) == 1);
  }
  CHECK(got.found.rule() == "longest");
}

}  // namespace

TEST_CASE("foreign communicator, foreign schedule, foreign rule, foreign space") {
  for (const std::size_t size : {1u, 2u, 4u, 8u}) {
    CAPTURE(size);
    const auto gradients = random_gradients<float>(size, segs.total(), 51);
    const auto got = reduce_by_mail(gradients, longest{}, binomial_tree{}, failing_space{countdown(-1), {}});
    check_longest(gradients, got.front());
    CHECK(got.front().found.schedule() == "binomial_tree");
  }
}

TEST_CASE("a foreign pairwise rule runs on every schedule of the library") {
  for (const std::size_t size : {2u, 3u, 5u, 8u}) {
    CAPTURE(size);
    const auto gradients = random_gradients<float>(size, segs.total(), 53);
    for_each_message_schedule([&](const auto& order, const std::string& name) {
      CAPTURE(name);
      check_longest(gradients, reduce_by_mail(gradients, longest{}, order).front());
    });
  }
}

TEST_CASE("foreign schedules compute the tree of the definition") {
  for (const std::size_t size : {1u, 2u, 4u, 8u}) {
    CAPTURE(size);
    const auto gradients = random_gradients<float>(size, segs.total(), 57);
    const auto expected = expectation::of<float>(adasum::rules::adasum{}, gradients, segs);
    schedule_simulation simulation(binomial_tree{}, static_cast<int>(size), adasum::schedule_input{segs.total()});
    CHECK_NOTHROW(simulation.combine());
    CHECK_NOTHROW(simulation.gather());
    check_reduced(reduce_by_mail(gradients, adasum::rules::adasum{}, binomial_tree{}).front(), expected, segs);
  }
  for (const std::size_t size : {1u, 2u, 3u, 5u, 8u})
    for (const int servers : {1, 2, 3}) {
      CAPTURE(size);
      CAPTURE(servers);
      const auto gradients = random_gradients<float>(size, segs.total(), 59);
      const auto expected = expectation::of<float>(adasum::rules::adasum{}, gradients, segs);
      const parameter_servers order{servers};
      check_reduced(reduce_by_mail(gradients, adasum::rules::adasum{}, order).front(), expected, segs);
    }
}

TEST_CASE("a rule of the whole Gram matrix runs all at once") {
  for (const std::size_t size : {1u, 2u, 5u, 8u}) {
    CAPTURE(size);
    const auto gradients = random_gradients<float>(size, segs.total(), 61);
    real_vector exact(segs.total());
    for (std::size_t k = 0; k < segs.size(); ++k) {
      const auto leaves = oracle_leaves(gradients, adasum::segments_view(segs).range(k));
      for (const auto& leaf : leaves)
        for (std::size_t x = 0; x < leaf.value.size(); ++x)
          exact[segs.offset(k) + x] += leaf.value[x] / (norm(leaf.value) * static_cast<real>(size));
    }
    const auto check = [&](const auto& order) {
      const auto got = reduce_by_mail(gradients, mean_of_units{}, order).front();
      // A weight 1/(n√A) is off by η/2 of itself (float lanes at most), and the mix by its rounding: the result is a
      // mean of unit vectors, so 2η in the norm covers both.
      const real bound = 2 * inner_product_error<float>(2, segs.total());
      const std::vector<real> bounds(segs.size(), bound);
      CHECK(worst_error_over_bound(got.gradient, exact, bounds, segs) <= 1);
    };
    check(adasum::schedules::all_to_all{});
    check(adasum::schedules::automatic{});
    check(parameter_servers{2});
  }
}

TEST_CASE("a schedule of pairs refuses a rule of the whole Gram matrix when it is compiled") {
  using namespace adasum::schedules;
  CHECK(adasum::schedule_for<all_to_all, mean_of_units>);
  CHECK(adasum::schedule_for<automatic, mean_of_units>);
  CHECK_FALSE(adasum::schedule_for<recursive_halving, mean_of_units>);
  CHECK_FALSE(adasum::schedule_for<binomial_tree, mean_of_units>);
  CHECK(adasum::schedule_for<binomial_tree, longest>);
  CHECK(adasum::communicator_for<minimal_communicator, failing_space>);
  CHECK(adasum::execution_space<failing_space, float>);
}

}  // namespace test_of_composability
