// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <adasum/adasum.hpp>

#include "support/allocations.hpp"
#include "support/whole_model_buckets.hpp"

namespace test_of_bucketed_whole_model {

/// Rules that weigh the whole model, over buckets: one reduction, as if the gradient had not been cut.

using namespace adasum::test;

namespace {

/// Adasum of the whole model: a pairwise rule, applied along the tree.
struct whole_adasum : adasum::rules::adasum {
  static constexpr std::string_view name = "whole_adasum";
  bool whole_model() const { return true; }
};

/// The mean of the whole model; throws when it is told to.
struct throwing_rule {
  static constexpr std::string_view name = "throwing";
  bool* throws;
  bool whole_model() const { return true; }
  void operator()(adasum::gram_view gram, std::span<double> weights) const {
    if (std::exchange(*throws, false)) throw std::runtime_error("the rule fails");
    std::ranges::fill(weights, 1.0 / static_cast<double>(gram.size()));
  }
};

/// Two ranks on each node.
std::vector<int> nodes_of(int size) {
  std::vector<int> nodes;
  for (int r = 0; r < size; ++r) nodes.push_back(r / 2);
  return nodes;
}

/// What a rank saw of a pass: how it ended, and whether the caller's gradients changed.
struct ended_pass {
  ending end;
  bool unchanged;
};
constexpr std::size_t none = 1000;

/// One pass in memory of the caller's. @param missing  a parameter that is not marked
template <class Buckets>
ended_pass pass_of(Buckets& buckets, std::vector<double> mine, std::uint64_t seed, std::size_t missing,
                   bool leaves = false) {
  const auto before = mine;
  const auto end = end_of(std::vector<double>{}, [&](auto&) {
    for (const auto i : shuffled_parameters(seed))
      if (i != missing) buckets.ready(i, parameter_of(mine, i));
    if (!leaves) buckets.wait();
  });
  return {end, same_bits(mine, before)};
}

/// How often this thread has measured or mixed.
thread_local std::size_t kernel_calls = 0;

struct counting_space : adasum::serial_space {
  friend bool operator==(const counting_space&, const counting_space&) = default;
  template <class T>
  void measure(const adasum::slice& part, std::span<const T* const> vectors, double* gram) const {
    ++kernel_calls;
    adasum::serial_space::measure(part, vectors, gram);
  }
  template <class T>
  void measure(const adasum::slice& part, std::span<const T* const> vectors, double* gram, std::size_t bytes) const {
    ++kernel_calls;
    adasum::serial_space::measure(part, vectors, gram, bytes);
  }
  template <class T>
  void mix(const adasum::slice& part, std::span<const T* const> vectors, const double* weights, T* out) const {
    ++kernel_calls;
    adasum::serial_space::mix(part, vectors, weights, out);
  }
};

}  // namespace

TEST_CASE("the bits and the report of one blocking plan for the whole gradient, pass after pass") {
  namespace rules = adasum::rules;
  const rules::adacons with_state{.momentum = 0.5};
  for (const int size : {1, 2, 3, 5}) {
    const auto inputs = random_passes(size, 4);
    check_same_as_whole(inputs, with_state, adasum::schedules::all_to_all{});
    check_same_as_whole(inputs, with_state, adasum::schedules::shared_memory{}, checked);
    check_same_as_whole(inputs, with_state, adasum::schedules::hierarchical{nodes_of(size), rules::sum{}});
    check_same_as_whole(inputs, with_state, adasum::schedules::automatic{}, checked);
    check_same_as_whole(inputs, rules::pcgrad{.seed = 3}, adasum::schedules::all_to_all{});
    check_same_as_whole(inputs, rules::multi_krum{.byzantine = 1, .selected = 2}, adasum::schedules::all_to_all{});
    check_same_as_whole(inputs, whole_adasum{}, adasum::schedules::all_to_all{});
    check_same_as_whole(inputs, whole_adasum{}, adasum::schedules::recursive_halving{});
  }
}

TEST_CASE("gradients that need the vectors themselves, in all parameters or in one") {
  for (const int size : {1, 2, 3, 5})
    for (const bool in_all : {true, false}) {
      CAPTURE(in_all);
      auto inputs = random_passes(size, 3);  // the last without
      for (std::size_t p = 0; p < 2; ++p)
        for (auto& gradient : inputs[p])
          for (std::size_t i = 0; i < model.size(); ++i)
            if (in_all || i == 3)
              for (double& x : parameter_of(gradient, i)) x *= 0x1p+600;  // squares beyond double
      check_same_as_whole(inputs, adasum::rules::adacons{}, adasum::schedules::shared_memory{});
      check_same_as_whole(inputs, whole_adasum{}, adasum::schedules::all_to_all{});
    }
}

TEST_CASE("a gradient that is not finite in one parameter: that rank is left out everywhere") {
  const adasum::options excludes{.check_agreement = false, .nonfinite = adasum::nonfinite_policy::exclude};
  for (const std::size_t where : {0u, 4u, 8u})
    for (const std::size_t who : {0u, 2u}) {
      CAPTURE(where);
      CAPTURE(who);
      auto inputs = random_passes(3, 3);
      parameter_of(inputs[1][who], where)[0] = std::numeric_limits<double>::quiet_NaN();
      check_same_as_whole(inputs, adasum::rules::adacons{.momentum = 0.5}, adasum::schedules::shared_memory{},
                          excludes);
      check_same_as_whole(inputs, whole_adasum{}, adasum::schedules::all_to_all{}, excludes);
    }
  auto inputs = random_passes(2, 1);
  parameter_of(inputs[0][1], 8)[0] = std::numeric_limits<double>::quiet_NaN();
  const auto found = results_of(on_ranks(2, [&](const adasum::thread_communicator& comm) {
    return reduced_in_buckets(comm, inputs, adasum::rules::multi_krum{}, adasum::schedules::all_to_all{}, excludes);
  }));
  for (const auto& rank : found) {
    CHECK(rank[0].found.excluded() == std::vector{1});
    CHECK(same_bits(rank[0].gradient, inputs[0][0]));
  }
}

TEST_CASE("nonfinite_policy::raise: the same on all ranks, and nothing has changed") {
  const auto check = [](const auto& order) {
    auto inputs = random_passes(3, 1)[0];
    inputs[1][5] = std::numeric_limits<double>::infinity();
    const adasum::options raises{.nonfinite = adasum::nonfinite_policy::raise};
    const auto ranks = on_ranks(3, [&](const adasum::thread_communicator& comm) {
      auto buckets = adasum::plan_bucketed<double>(adasum::serial_space{}, comm, model, bucket_bytes,
                                                   adasum::rules::adacons{}, order, raises);
      auto& mine = inputs[static_cast<std::size_t>(comm.rank())];
      for (int pass = 0; pass < 3; ++pass) {
        for (std::size_t i = model.size(); i-- > 0;) {
          std::ranges::copy(parameter_of(mine, i), buckets.gradient(i).begin());
          buckets.ready(i);
        }
        CHECK_THROWS_AS(buckets.wait(), adasum::nonfinite_error);
        for (std::size_t i = 0; i < model.size(); ++i)
          CHECK(std::ranges::equal(buckets.gradient(i), parameter_of(mine, i)));
      }
      return 0;
    });
    for (const auto& rank : ranks) REQUIRE_MESSAGE(rank.value, rank.description());
  };
  check(adasum::schedules::all_to_all{});
  check(adasum::schedules::shared_memory{});
  check(adasum::schedules::hierarchical{std::vector{0, 0, 1}, adasum::rules::sum{}});
}

namespace {

/// @param may_return  whether the others may have a result where the rule throws on one rank: from copies of all gradients, each
///                    computes its own
template <class Schedule>
void check_failures(int size, const Schedule& order, double scale, bool may_return = false) {
  auto inputs = random_passes(size, 1)[0];
  for (auto& gradient : inputs)
    for (double& x : gradient) x *= scale;
  const int culprit = size - 1;
  for (const std::size_t missing : {std::size_t{0}, std::size_t{4}, std::size_t{8}, none})
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
        auto buckets = adasum::plan_bucketed<double>(adasum::serial_space{}, comm, model, bucket_bytes,
                                                     throwing_rule{&throws}, order, unchecked);
        const auto pass = pass_of(buckets, mine, r, bad ? missing : none, bad && leaves);
        CHECK(pass.unchanged == (bad || pass.end.how != way::returned));
        if (!bad && !(may_return && missing == none && pass.end.how == way::returned))
          CHECK_MESSAGE(pass.end.how == way::communication_error, to_string(pass.end.how), ": ", pass.end.message);
        if (bad && missing == none)
          CHECK(pass.end.message == "the rule fails");
        else if (bad && !leaves)
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
      check_failures(size, adasum::schedules::shared_memory{}, scale, true);
      check_failures(size, adasum::schedules::hierarchical{nodes_of(size), adasum::rules::sum{}}, scale);
    }
}

TEST_CASE("a parameter that is not marked, where ranks check for agreement: all are told before the pass begins") {
  for (const std::size_t missing : {std::size_t{0}, model.size() - 1}) {
    const auto ranks = on_ranks(3, [&](const adasum::thread_communicator& comm) {
      auto buckets = adasum::plan_bucketed<double>(adasum::serial_space{}, comm, model, bucket_bytes,
                                                   adasum::rules::adacons{}, adasum::schedules::all_to_all{}, checked);
      return pass_of(buckets, random_passes(3, 1)[0][0], 1, comm.rank() == 1 ? missing : none).end;
    });
    for (const auto& rank : ranks) {
      REQUIRE_MESSAGE(rank.value, rank.description());
      CHECK(rank.value->how == way::agreement_error);
      CHECK(rank.value->message.find("parameter " + std::to_string(missing) + " is not ready") != std::string::npos);
    }
  }
}

TEST_CASE("a pass begins when the last gradient is ready, and allocates nothing from the second one on") {
  const auto ranks = on_ranks(3, [&](const adasum::thread_communicator& comm) {
    auto buckets =
        adasum::plan_bucketed<double>(counting_space{}, comm, model, bucket_bytes, adasum::rules::adacons{}, unchecked);
    CHECK(buckets.buckets() == 1);
    CHECK(buckets.location_of(7).bucket == 0);
    CHECK(buckets.location_of(7).segment == 7);
    CHECK(buckets.location_of(7).report == 0);
    CHECK(buckets.location_of(7).elements == adasum::index_range{model.offset(7), model.offset(8)});
    for (int pass = 0; pass < 4; ++pass) {
      const auto before = allocations();
      const auto so_far = kernel_calls;
      for (std::size_t i = model.size(); i-- > 0;) {
        std::ranges::fill(buckets.gradient(i), comm.rank() + 1.0);
        if (i > 0) buckets.ready(i);
        CHECK_FALSE(buckets.test());
      }
      CHECK(kernel_calls == so_far);
      buckets.ready(0);
      buckets.wait();
      CHECK(kernel_calls > so_far);
      if (pass > 1) CHECK(allocations() == before);
    }
    return 0;
  });
  for (const auto& rank : ranks) REQUIRE_MESSAGE(rank.value, rank.description());
}

TEST_CASE("an inner rule that weighs the whole model, over several buckets, is refused by name") {
  const adasum::schedules::hierarchical inner{std::vector{0, 0, 1, 1}, adasum::rules::adacons{}};
  for (const auto& choices : {checked, unchecked}) {
    const auto ranks = on_ranks(4, [&](const adasum::thread_communicator& comm) {
      return end_of(std::vector<double>{}, [&](auto&) {
        adasum::plan_bucketed<double>(adasum::serial_space{}, comm, model, bucket_bytes, adasum::rules::adasum{}, inner,
                                      choices);
      });
    });
    for (const auto& rank : ranks) {
      REQUIRE_MESSAGE(rank.value, rank.description());
      CHECK(rank.value->message.find("the inner rule of the schedule hierarchical weighs the whole model") !=
            std::string::npos);
    }
  }
}

TEST_CASE("no parameters, and parameters without elements") {
  const adasum::self_communicator alone;
  auto none_at_all =
      adasum::plan_bucketed<float>(adasum::serial_space{}, alone, std::vector<int>{}, 100, adasum::rules::adacons{});
  CHECK(none_at_all.test());
  CHECK(none_at_all.wait().empty());
  const auto ranks = on_ranks(3, [&](const adasum::thread_communicator& comm) {
    auto empty = adasum::plan_bucketed<double>(adasum::serial_space{}, comm, std::vector{0, 0}, 0,
                                               adasum::rules::adacons{}, adasum::schedules::all_to_all{});
    empty.ready(1);
    empty.ready(0);
    CHECK(empty.wait()[0]->segments() == 2);
    return 0;
  });
  for (const auto& rank : ranks) REQUIRE_MESSAGE(rank.value, rank.description());
}

}  // namespace test_of_bucketed_whole_model
