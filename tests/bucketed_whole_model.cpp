// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <adasum/adasum.hpp>
#ifdef ADASUM_TEST_EIGEN
#include <adasum/rules/eigen/cagrad.hpp>
#include <adasum/rules/eigen/conflict_free.hpp>
#include <adasum/rules/eigen/dualproj.hpp>
#include <adasum/rules/eigen/fairgrad.hpp>
#include <adasum/rules/eigen/nash_mtl.hpp>
#include <adasum/rules/eigen/upgrad.hpp>
#endif

#include "support/whole_model_buckets.hpp"

namespace test_of_bucketed_whole_model {

/// Rules that weigh the whole model, over buckets: as if the gradient had not been cut.

using namespace adasum::test;

namespace {

const std::vector<int> rank_counts{1, 2, 3, 5};

/// visit(rule) for every such rule of the library.
template <class Visitor>
void for_each_whole_model_rule(Visitor&& visit) {
  namespace rules = adasum::rules;
  visit(rules::adacons{.momentum = 0.5});
  visit(rules::adacons{.momentum = 0.99, .scale = rules::adacons::scaling::mean_norm});
  visit(rules::gradvac{.beta = 0.25, .target = 0.5});
  visit(rules::pcgrad{.seed = 3});
  visit(rules::multi_krum{.byzantine = 1, .selected = 2});
  visit(rules::geometric_median{});
  visit(rules::centred_clipping{});
  visit(rules::gradient_agreement_filtering{});
  visit(rules::nearest_neighbour_mixing<rules::geometric_median>{.byzantine = 1});
#ifdef ADASUM_TEST_EIGEN
  visit(rules::cagrad{});
  visit(rules::conflict_free{});
  visit(rules::dualproj{});
  visit(rules::fairgrad{});
  visit(rules::nash_mtl{});
  visit(rules::upgrad{});
#endif
}

/// Adasum of the whole model: a pairwise rule, applied along the tree.
struct whole_adasum : adasum::rules::adasum {
  static constexpr std::string_view name = "whole_adasum";
  bool whole_model() const { return true; }
};

/// Two ranks on each node.
std::vector<int> nodes_of(int size) {
  std::vector<int> nodes;
  for (int r = 0; r < size; ++r) nodes.push_back(r / 2);
  return nodes;
}

}  // namespace

TEST_CASE("where inner products are exact: the bits of a plan for the whole gradient, pass after pass") {
  for (const int size : rank_counts) {
    const auto inputs = exact_passes<double>(size, 5);
    for_each_whole_model_rule(
        [&](const auto& rule) { check_same_as_whole(inputs, rule, adasum::schedules::all_to_all{}); });
    check_same_as_whole(inputs, whole_adasum{}, adasum::schedules::all_to_all{});
    const adasum::rules::adacons rule{.momentum = 0.75};
    check_same_as_whole(inputs, rule, adasum::schedules::shared_memory{}, checked);
    check_same_as_whole(inputs, rule, adasum::schedules::hierarchical{nodes_of(size), adasum::rules::sum{}});
    check_same_as_whole(exact_passes<float>(size, 3), rule, adasum::schedules::automatic{}, checked);
  }
}

TEST_CASE("otherwise, those up to the rounding of inner products, and the same on all ranks") {
  for (const int size : rank_counts) {
    check_close_to_whole(size, adasum::rules::adacons{.momentum = 0.5});
    check_close_to_whole(size, adasum::rules::adacons{.scale = adasum::rules::adacons::scaling::mean_norm});
    check_close_to_whole(size, adasum::rules::gradvac{.beta = 0.25, .target = 0.5});
    check_close_to_whole(size, adasum::rules::multi_krum{.byzantine = 1});
    check_close_to_whole(size, adasum::rules::centred_clipping{});
    check_close_to_whole(size, whole_adasum{});
  }
}

TEST_CASE("rules of norms and row sums by sums of vectors: always the bits of a plan for the whole gradient") {
  using adasum::rules::adacons;
  const auto check = [](const auto& inputs, const auto& order, const adasum::options& choices) {
    check_same_as_whole(inputs, adacons{.momentum = 0.5}, order, choices);
    check_same_as_whole(inputs, adacons{.scale = adacons::scaling::mean_norm}, order, choices);
  };
  for (const int size : {4, 6, 11, 12}) {  // 3, 5 and 7 are one stage
    passes<double> inputs;
    passes<float> floats;
    for (std::uint64_t p = 0; p < 4; ++p) {
      inputs.push_back(random_gradients<double>(static_cast<std::size_t>(size), model.total(), 90 + p));
      floats.push_back(random_gradients<float>(static_cast<std::size_t>(size), model.total(), 90 + p));
    }
    check(inputs, adasum::schedules::recursive_halving{}, unchecked);
    check(floats, adasum::schedules::recursive_halving{}, unchecked);
    check(inputs, adasum::schedules::recursive_doubling{}, checked);
    for (double& x : parameter_of(inputs[1][0], 3)) x *= 0x1p+600;
    parameter_of(inputs[2][2], 3)[0] = std::numeric_limits<double>::quiet_NaN();
    check(inputs, adasum::schedules::recursive_halving{.radix = 3},
          {.check_agreement = false, .nonfinite = adasum::nonfinite_policy::exclude});
  }
  // The choice is that for the whole gradient, not for each bucket.
  const adasum::schedule_input whole{.length = model.total(),
                                     .element_size = sizeof(double),
                                     .segments = model.size(),
                                     .along_tree = false,
                                     .sums = 2};
  REQUIRE(adasum::schedules::automatic{}.chosen_name(24, whole) == "recursive_doubling");
  check_same_as_whole(passes<double>{random_gradients<double>(24, model.total(), 95)}, adacons{},
                      adasum::schedules::automatic{.in_place = false}, unchecked);
}

TEST_CASE("segments that need the vectors themselves: combined over all buckets") {
  for (const int size : {1, 2, 3, 5}) {
    // Their squares are beyond double: in all buckets, and in some only.
    check_same_as_whole(exact_passes<double>(size, 2, 0x1p+600), adasum::rules::adacons{.momentum = 0.5},
                        adasum::schedules::all_to_all{});
    auto inputs = exact_passes<double>(size, 3);
    for (auto& pass : inputs)
      for (auto& gradient : pass)
        for (double& x : parameter_of(gradient, 3)) x *= 0x1p+600;
    for (auto& gradient : inputs[1]) gradient = exact_gradients<double>(1, 7).front();  // and one pass without
    check_same_as_whole(inputs, adasum::rules::adacons{}, adasum::schedules::shared_memory{});
    check_same_as_whole(inputs, adasum::rules::adacons{},
                        adasum::schedules::hierarchical{nodes_of(size), adasum::rules::sum{}});
    // Neighbours are opposed, but for one element.
    for (std::size_t r = 1; r < inputs[2].size(); r += 2) {
      inputs[2][r] = inputs[2][r - 1];
      for (double& x : inputs[2][r]) x = -x;
      inputs[2][r][7] += 1;
    }
    // One merge of exact vectors; the next would be of vectors with rounded elements.
    if (size <= 2) check_same_as_whole(inputs, whole_adasum{}, adasum::schedules::all_to_all{});
  }
}

TEST_CASE("rules that compare distances: from differences, which a large common part does not hide") {
  using adasum::rules::geometric_median, adasum::rules::multi_krum, adasum::rules::nearest_neighbour_mixing;
  const adasum::schedules::all_to_all order{};
  for (const int size : {2, 3, 5, 6}) {
    auto own = exact_passes<double>(size, 2, 0x1p-20);
    if (size > 2) own[1][2] = own[1][0];  // at no distance at all
    // In one bucket or in all. Inner products are rounded to far more than these squares; differences are exact.
    for (const std::size_t first : {std::size_t{4}, std::size_t{0}}) {
      auto all = own;
      for (auto& pass : all)
        for (auto& gradient : pass)
          for (std::size_t i = first; i < (first > 0 ? first + 1 : model.size()); ++i)
            for (double& x : parameter_of(gradient, i)) x += 1e8;
      check_chosen_by_differences(own, all, multi_krum{.byzantine = 1, .selected = 2}, order);
      check_close_to_whole(all, geometric_median{});
      check_close_to_whole(all, adasum::rules::centred_clipping{});
    }
    // With even numbers and one element of 2²⁷, all sums of products are exact, too.
    auto exact = exact_passes<double>(size, 2, 2.0);
    for (auto& pass : exact)
      for (auto& gradient : pass) parameter_of(gradient, 4)[9] = 0x1p27;
    check_same_as_whole(exact, multi_krum{.byzantine = 1}, order);
    check_same_as_whole(exact, nearest_neighbour_mixing<geometric_median>{.byzantine = 1}, order);
  }
}

TEST_CASE("a gradient that is not finite in one bucket") {
  const auto nan = std::numeric_limits<double>::quiet_NaN();
  const auto check = [&](const passes<double>& inputs, const adasum::options& choices) {
    check_same_as_whole(inputs, adasum::rules::adacons{.momentum = 0.5}, adasum::schedules::all_to_all{}, choices);
    check_same_as_whole(inputs, adasum::rules::adacons{}, adasum::schedules::shared_memory{}, choices);
    check_same_as_whole(inputs, adasum::rules::multi_krum{.byzantine = 1}, adasum::schedules::all_to_all{}, choices);
    check_same_as_whole(inputs, whole_adasum{}, adasum::schedules::all_to_all{}, choices);
    check_same_as_whole(inputs, adasum::rules::adacons{},
                        adasum::schedules::hierarchical{nodes_of(3), adasum::rules::sum{}}, choices);
  };
  for (const std::size_t where : {0u, 4u, 8u})
    for (const std::size_t who : {0u, 2u}) {
      CAPTURE(where);
      CAPTURE(who);
      auto inputs = exact_passes<double>(3, 3);
      parameter_of(inputs[1][who], where)[0] = nan;
      check(inputs, {.check_agreement = false, .nonfinite = adasum::nonfinite_policy::exclude});
      // Beside it, vectors that must be looked at; those of the rank that is left out are not.
      for (auto& gradient : inputs[1])
        for (double& x : parameter_of(gradient, 3)) x *= 0x1p+600;
      check(inputs, {.check_agreement = false, .nonfinite = adasum::nonfinite_policy::exclude});
    }
  // Out of the whole model: without that, the other buckets would show it.
  auto inputs = exact_passes<double>(2, 1);
  parameter_of(inputs[0][1], 8)[0] = nan;
  const adasum::options excludes{.nonfinite = adasum::nonfinite_policy::exclude};
  const auto found = results_of(on_ranks(2, [&](const adasum::thread_communicator& comm) {
    return reduced_in_buckets(comm, inputs, adasum::rules::multi_krum{}, adasum::schedules::all_to_all{}, excludes,
                              400);
  }));
  for (const auto& rank : found) {
    CHECK(rank[0].found.excluded() == std::vector{1});
    CHECK(same_bits(rank[0].gradient, inputs[0][0]));
  }
}

TEST_CASE("nonfinite_policy::raise: the same on all ranks, and nothing has changed") {
  const auto check = [](const auto& order, int size = 3) {
    auto inputs = exact_gradients<float>(size, 1);
    inputs[1][5] = std::numeric_limits<float>::infinity();
    const adasum::options raises{.nonfinite = adasum::nonfinite_policy::raise};
    const auto ranks = on_ranks(size, [&](const adasum::thread_communicator& comm) {
      auto buckets = adasum::plan_bucketed<float>(adasum::serial_space{}, comm, model, 400, adasum::rules::adacons{},
                                                  order, raises);
      const auto r = static_cast<std::size_t>(comm.rank());
      for (int pass = 0; pass < 3; ++pass) {
        for (std::size_t i = model.size(); i-- > 0;) {
          std::ranges::copy(parameter_of(inputs[r], i), buckets.gradient(i).begin());
          buckets.ready(i);
        }
        CHECK_THROWS_AS(buckets.wait(), adasum::nonfinite_error);
        for (std::size_t i = 0; i < model.size(); ++i)
          CHECK(std::ranges::equal(buckets.gradient(i), parameter_of(inputs[r], i)));
      }
      return 0;
    });
    for (const auto& rank : ranks) REQUIRE_MESSAGE(rank.value, rank.description());
  };
  check(adasum::schedules::all_to_all{});
  check(adasum::schedules::shared_memory{});
  check(adasum::schedules::recursive_halving{}, 4);
  check(adasum::schedules::hierarchical{std::vector{0, 0, 1}, adasum::rules::sum{}});
}

namespace {

template <class Rule = throwing_rule, class Schedule>
void check_failures(int size, const Schedule& order, double scale) {
  const auto inputs = exact_gradients<double>(size, 5, scale);
  const int culprit = size - 1;
  for (const std::size_t missing : {std::size_t{0}, std::size_t{3}, std::size_t{4}, std::size_t{8}, none})
    for (const bool leaves : {false, true}) {
      if (leaves && missing == none) continue;  // it is all there, and the pass is ended
      CAPTURE(size);
      CAPTURE(missing);
      CAPTURE(leaves);
      case_under_test() = "parameter " + std::to_string(missing) + (leaves ? ", leaves" : "");
      const auto ranks = on_ranks(size, [&](const adasum::thread_communicator& comm) {
        const auto r = static_cast<std::size_t>(comm.rank());
        const bool bad = comm.rank() == culprit;
        bool throws = bad && missing == none;
        auto mine = inputs[r];  // lives longer than the buckets
        auto buckets = adasum::plan_bucketed<double>(adasum::serial_space{}, comm, model, 100 * sizeof(double),
                                                     Rule{&throws}, order, unchecked);
        const auto pass = pass_of(buckets, mine, r, bad ? missing : none, bad && leaves);
        CHECK(pass.unchanged);
        if (!bad)
          CHECK_MESSAGE(pass.end.how == way::communication_error, to_string(pass.end.how), ": ", pass.end.message);
        else if (missing == none)
          CHECK(pass.end.message == "the rule fails");
        else if (!leaves)
          CHECK(pass.end.message == "adasum::bucketed::wait: parameter " + std::to_string(missing) + " is not ready");
        if (leaves) return 0;
        const auto next = pass_of(buckets, mine, r, none);
        CHECK_MESSAGE(next.end.how == way::returned, next.end.message);
        CHECK_FALSE(next.unchanged);
        return 0;
      });
      for (const auto& rank : ranks) REQUIRE_MESSAGE(rank.value, rank.description());
    }
}

}  // namespace

TEST_CASE("a rank that fails or leaves midway: nobody hangs, and no gradient of the callers' changes") {
  for (const int size : {2, 3, 5})
    for (const double scale : {1.0, 0x1p+600}) {
      CAPTURE(scale);
      check_failures(size, adasum::schedules::all_to_all{}, scale);
      check_failures(size, adasum::schedules::shared_memory{}, scale);
      check_failures(size, adasum::schedules::hierarchical{nodes_of(size), adasum::rules::sum{}}, scale);
    }
  for (const int size : {4, 6})
    check_failures<throwing_row_sum_rule>(size, adasum::schedules::recursive_halving{}, 1.0);
}

TEST_CASE("a parameter that is not marked, where ranks check for agreement: all are told before the pass begins") {
  for (const std::size_t missing : {std::size_t{0}, model.size() - 1}) {
    const auto ranks = on_ranks(3, [&](const adasum::thread_communicator& comm) {
      auto buckets = adasum::plan_bucketed<double>(adasum::serial_space{}, comm, model, 100 * sizeof(double),
                                                   adasum::rules::adacons{}, adasum::schedules::all_to_all{}, checked);
      return pass_of(buckets, exact_gradients<double>(3, 5, 1)[0], 1, comm.rank() == 1 ? missing : none).end;
    });
    for (std::size_t r = 0; r < 3; ++r) {
      REQUIRE_MESSAGE(ranks[r].value, ranks[r].description());
      const bool has_begun = missing == 0;  // bucket 0 has the last parameters
      CHECK(ranks[r].value->how == (!has_begun ? way::agreement_error
                                    : r == 1   ? way::bad_input
                                               : way::communication_error));
    }
  }
}

TEST_CASE("a rank that fails wherever another one is: also while that one goes on to combine vector by vector") {
  const adasum::schedules::hierarchical order{std::vector{0, 0}, adasum::rules::sum{}};
  for (const double scale : {1.0, 0x1p+600})
    for (std::size_t tests = 0; tests < 24; ++tests) {
      case_under_test() = "fails after " + std::to_string(tests) + " tests in turn";
      const auto inputs = exact_gradients<double>(2, 5, scale);
      std::barrier turn(2);
      const auto ranks = on_ranks(2, [&](const adasum::thread_communicator& comm) {
        bool throws = false;
        auto buckets = adasum::plan_bucketed<double>(adasum::serial_space{}, comm, model, 100 * sizeof(double),
                                                     throwing_rule{&throws}, order, unchecked);
        auto mine = inputs[static_cast<std::size_t>(comm.rank())];
        return end_of(std::vector<double>{}, [&](auto&) {
          for (int rank = 0; rank < 2; ++rank, turn.arrive_and_wait())
            for (std::size_t i = comm.rank() == 0 ? 0 : 1; rank == comm.rank() && i < model.size(); ++i)
              buckets.ready(i, parameter_of(mine, i));
          for (std::size_t at = 0; at < 2 * tests; ++at, turn.arrive_and_wait())
            if (static_cast<int>(at % 2) == comm.rank()) buckets.test();
          buckets.wait();
        });
      });
      for (const auto& rank : ranks) REQUIRE_MESSAGE(rank.value, rank.description());
      CHECK(ranks[0].value->how == way::communication_error);
      CHECK(ranks[1].value->message == "adasum::bucketed::wait: parameter 0 is not ready");
    }
}

TEST_CASE("what cannot be done is refused by name") {
  const auto message_of = [](const auto& rule, const auto& order, const adasum::options& choices) {
    const auto ranks = on_ranks(4, [&](const adasum::thread_communicator& comm) {
      return end_of(std::vector<float>{}, [&](auto&) {
        adasum::plan_bucketed<float>(adasum::serial_space{}, comm, model, 400, rule, order, choices);
      });
    });
    for (const auto& rank : ranks) CHECK(rank.value->message == ranks.front().value->message);
    return ranks.front().value->message;
  };
  const auto pairs = message_of(whole_adasum{}, adasum::schedules::recursive_halving{}, unchecked);
  CHECK(pairs.find("recursive_halving combines gradients pair by pair") != std::string::npos);
  CHECK(message_of(whole_adasum{}, adasum::schedules::recursive_halving{}, checked).find(pairs) != std::string::npos);
  const adasum::schedules::hierarchical inner{std::vector{0, 0, 1, 1}, adasum::rules::adacons{}};
  const auto whole_inner = message_of(adasum::rules::adasum{}, inner, unchecked);
  CHECK(whole_inner.find("the inner rule of the schedule hierarchical weighs the whole model") != std::string::npos);

  const auto ranks = on_ranks(2, [&](const adasum::thread_communicator& comm) {
    return end_of(std::vector<float>{}, [&](auto&) {
      adasum::plan_bucketed<float>(adasum::serial_space{}, comm, model, 400u + static_cast<unsigned>(comm.rank()),
                                   adasum::rules::adacons{}, checked);
    });
  });
  for (const auto& rank : ranks)
    CHECK(
        rank.value->message ==
        "adasum: the ranks disagree on the options: rank 0 has buckets of 400 bytes, rank 1 has buckets of 401 bytes");
}

TEST_CASE("no parameters, and parameters without elements") {
  const adasum::self_communicator alone;
  auto none_at_all =
      adasum::plan_bucketed<float>(adasum::serial_space{}, alone, std::vector<int>{}, 100, adasum::rules::adacons{});
  CHECK(none_at_all.test());
  CHECK(none_at_all.wait().empty());
  const auto ranks = on_ranks(3, [&](const adasum::thread_communicator& comm) {
    auto empty = adasum::plan_bucketed<float>(adasum::serial_space{}, comm, std::vector{0, 0}, 0,
                                              adasum::rules::adacons{}, adasum::schedules::all_to_all{});
    empty.ready(1);
    empty.ready(0);
    CHECK(empty.wait()[0]->segments() == 2);
    return 0;
  });
  for (const auto& rank : ranks) REQUIRE_MESSAGE(rank.value, rank.description());
}

}  // namespace test_of_bucketed_whole_model
