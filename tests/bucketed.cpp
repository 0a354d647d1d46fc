// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <limits>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <adasum/adasum.hpp>
#include <adasum/core/waiting.hpp>

#include "support/allocations.hpp"
#include "support/disagreements.hpp"
#include "support/random_gradients.hpp"
#include "support/thread_reduction.hpp"

namespace test_of_bucketed {

/// bucketed: any order of parameters on any rank, against a blocking plan for each bucket.

using namespace adasum::test;

namespace {

const std::vector<std::size_t> lengths{40, 3, 0, 70, 200, 9, 9, 31, 1};
const adasum::segments parameters(lengths);
const std::size_t bucket_bytes = 100 * sizeof(float);  // {8, 7, 6, 5}, {4}, {3, 2, 1}, {0}

/// The parameters in an order of this seed's.
std::vector<std::size_t> shuffled(std::uint64_t seed) {
  uniform_numbers random(seed);
  std::vector<std::size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (auto i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

std::vector<std::vector<float>> gradients_of(int size) {
  return random_gradients<float>(static_cast<std::size_t>(size), parameters.total(), 11);
}

/// One rank's gradients, each by itself.
std::vector<std::vector<float>> cut(const std::vector<float>& whole) {
  std::vector<std::vector<float>> pieces;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const auto begin = whole.begin() + static_cast<std::ptrdiff_t>(parameters.offset(i));
    pieces.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(lengths[i]));
  }
  return pieces;
}

/// What blocking plans for the buckets, in their own buffers as the buckets' are, make of the gradients.
template <class Rule, class Schedule>
std::vector<float> expected_of(const std::vector<std::vector<float>>& gradients, const Rule& rule,
                               const Schedule& order) {
  const std::pair<std::size_t, std::size_t> buckets[] = {{5, 9}, {4, 5}, {1, 4}, {0, 1}};
  const auto ranks = on_ranks(static_cast<int>(gradients.size()), [&](const adasum::thread_communicator& comm) {
    const auto& mine = gradients[static_cast<std::size_t>(comm.rank())];
    std::vector<float> result(mine.size());
    for (const auto& [first, last] : buckets) {
      const adasum::segments segs(lengths.begin() + static_cast<std::ptrdiff_t>(first),
                                  lengths.begin() + static_cast<std::ptrdiff_t>(last));
      auto plan = adasum::plan_allreduce<float>(adasum::serial_space{}, comm, segs, rule, order, unchecked);
      const auto begin = static_cast<std::ptrdiff_t>(parameters.offset(first));
      std::copy_n(mine.begin() + begin, segs.total(), plan.buffer().begin());
      plan();
      std::copy_n(plan.buffer().begin(), segs.total(), result.begin() + begin);
    }
    return result;
  });
  for (const auto& rank : ranks) REQUIRE_MESSAGE(rank.value, rank.description());
  return *ranks.front().value;
}

template <class Rule, class Schedule>
void check(int size, const Rule& rule, const Schedule& order, const adasum::options& choices) {
  const auto inputs = gradients_of(size);
  const auto expected = expected_of(inputs, rule, order);
  const auto ranks = on_ranks(size, [&](const adasum::thread_communicator& comm) {
    const auto r = static_cast<std::uint64_t>(comm.rank());
    auto buckets =
        adasum::plan_bucketed<float>(adasum::serial_space{}, comm, parameters, bucket_bytes, rule, order, choices);
    CHECK(buckets.buckets() == 4);
    for (std::uint64_t pass = 0; pass < 6; ++pass) {
      const bool in_place = pass % 2 == 0;
      auto mine = cut(inputs[r]);
      auto results = mine;
      const auto order_of_pass = shuffled(100 * pass + r);  // another one on every rank
      const auto before = allocations();
      for (const auto i : order_of_pass) {
        if (in_place) {
          std::ranges::copy(mine[i], buckets.gradient(i).begin());
          buckets.ready(i);
        } else {
          buckets.ready(i, mine[i]);
        }
      }
      if (pass % 3 == 0)
        while (!buckets.test()) std::this_thread::yield();
      const auto reports = buckets.wait();
      if (pass > 1) CHECK(allocations() == before);
      CHECK(reports.size() == 4);
      CHECK(reports[1]->segments() == 1);
      CHECK(reports[0]->segments() == 4);
      for (std::size_t i = 0; i < results.size(); ++i) {
        if (in_place)
          std::ranges::copy(buckets.gradient(i), results[i].begin());
        else
          results[i] = mine[i];
      }
      std::vector<float> whole;
      for (const auto& piece : results) whole.insert(whole.end(), piece.begin(), piece.end());
      CHECK(same_bits(whole, expected));
    }
    return 0;
  });
  for (const auto& rank : ranks) REQUIRE_MESSAGE(rank.value, rank.description());
}

}  // namespace

TEST_CASE("any order on any rank, by any schedule: the bits of blocking plans") {
  for (const int size : {1, 2, 3, 4, 5})
    for_each_schedule([&](const auto& order, const std::string& name) {
      CAPTURE(size);
      CAPTURE(name);
      check(size, adasum::rules::adasum{}, order, unchecked);
      check(size, adasum::rules::mean{}, order, checked);
    });
  check(4, adasum::rules::adacons{.per_segment = true}, adasum::schedules::all_to_all{}, unchecked);
  check(4, adasum::rules::adasum{}, adasum::schedules::hierarchical{std::vector{0, 0, 1, 1}, adasum::rules::mean{}},
        unchecked);
}

TEST_CASE("buckets fill from the last parameter to the first") {
  const adasum::self_communicator comm;
  const auto buckets = adasum::plan_bucketed<float>(adasum::serial_space{}, comm, parameters, bucket_bytes);
  CHECK(buckets.parameters() == lengths.size());
  const std::vector<std::size_t> expected{3, 2, 2, 2, 1, 0, 0, 0, 0};
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    CHECK(buckets.location_of(i).bucket == expected[i]);
    CHECK(buckets.location_of(i).elements.size() == lengths[i]);
  }
  CHECK(buckets.location_of(7).segment == 2);
  CHECK(buckets.location_of(7).elements == adasum::index_range{18, 49});
  const auto of = [&](const auto& sizes, std::size_t bytes) {
    return adasum::plan_bucketed<float>(adasum::serial_space{}, comm, sizes, bytes).buckets();
  };
  CHECK(of(lengths, 0) == 8);  // an empty parameter needs no bucket of its own
  CHECK(of(lengths, 1 << 20) == 1);
  CHECK(of(std::vector<int>{}, 100) == 0);
  CHECK(of(std::vector<int>{5, 5}, 40) == 1);
  CHECK(of(std::vector<int>{5, 5}, 39) == 2);
  CHECK(adasum::plan_bucketed<float>(adasum::serial_space{}, comm, {5, 5}, 39).buckets() == 2);
  CHECK_THROWS_AS(of(std::vector<int>{5, -5}, 39), adasum::bad_input);
}

TEST_CASE("parameters of several segments") {
  const std::vector<adasum::segments> cut_parameters{{2, 3}, {4}, {1, 1, 1}};
  auto buckets = adasum::plan_bucketed<double>(adasum::serial_space{}, adasum::self_communicator{}, cut_parameters, 64);
  REQUIRE(buckets.buckets() == 2);
  CHECK(buckets.location_of(2).segment == 1);
  for (const std::size_t i : {1u, 0u, 2u}) {
    std::ranges::fill(buckets.gradient(i), 2.0);
    buckets.ready(i);
  }
  const auto reports = buckets.wait();
  CHECK(reports[0]->segments() == 4);
  CHECK(reports[1]->segments() == 2);
  CHECK(reports[0]->norm(0, 0) == 4);
}

TEST_CASE("what is refused at once, and changes nothing") {
  auto buckets =
      adasum::plan_bucketed<float>(adasum::serial_space{}, adasum::self_communicator{}, std::vector{3, 4}, 0);
  std::vector<float> three(3, 1), four(4, 1);
  CHECK_THROWS_WITH_AS(buckets.ready(2), "adasum::bucketed::ready: there is no parameter 2, only 2, numbered from 0",
                       adasum::bad_input);
  CHECK_THROWS_WITH_AS(buckets.gradient(2),
                       "adasum::bucketed::gradient: there is no parameter 2, only 2, numbered from 0",
                       adasum::bad_input);
  CHECK_THROWS_WITH_AS(buckets.ready(0, four), "adasum::bucketed::ready: parameter 0 has 3 elements, its gradient 4",
                       adasum::bad_input);
  buckets.ready(0, three);
  CHECK_THROWS_WITH_AS(buckets.ready(0, three),
                       "adasum::bucketed::ready: parameter 0 is ready already; wait() ends the pass",
                       adasum::bad_input);
  CHECK_FALSE(buckets.test());
  CHECK_THROWS_WITH_AS(buckets.wait(), "adasum::bucketed::wait: parameter 1 is not ready", adasum::bad_input);
  buckets.ready(0, three);
  buckets.ready(1, four);
  CHECK(buckets.test());
  CHECK_NOTHROW(buckets.wait());
}

TEST_CASE("a rank that does not mark a parameter, or leaves midway: nobody hangs, and the other buckets are reduced") {
  for (const int size : {2, 3, 5})
    for (const bool leaves : {false, true})
      for_each_schedule([&](const auto& order, const std::string& name) {
        for (const std::size_t missing : {0u, 3u, 4u, 8u}) {
          CAPTURE(size);
          CAPTURE(leaves);
          CAPTURE(name);
          CAPTURE(missing);
          const auto inputs = gradients_of(size);
          const auto expected = cut(expected_of(inputs, adasum::rules::adasum{}, order));
          const int culprit = size / 2;
          const auto ranks = on_ranks(size, [&](const adasum::thread_communicator& comm) {
            const auto r = static_cast<std::size_t>(comm.rank());
            auto buckets = adasum::plan_bucketed<float>(adasum::serial_space{}, comm, parameters, bucket_bytes,
                                                        adasum::rules::adasum{}, order, unchecked);
            const auto pass = [&](bool complete) {
              auto mine = cut(inputs[r]);
              for (const auto i : shuffled(r))
                if (complete || i != missing) buckets.ready(i, mine[i]);
              if (!complete && leaves) return std::pair(ending{}, mine);
              auto end = end_of(std::vector<float>{}, [&](auto&) { buckets.wait(); });
              return std::pair(end, mine);
            };
            const auto first = pass(comm.rank() != culprit);
            const auto& end = first.first;
            const auto& results = first.second;
            if (comm.rank() == culprit) {
              if (!leaves)
                CHECK(end.message == "adasum::bucketed::wait: parameter " + std::to_string(missing) + " is not ready");
            } else {
              CHECK_MESSAGE(end.how == way::communication_error, to_string(end.how), ": ", end.message);
              for (std::size_t i = 0; i < results.size(); ++i)
                if (buckets.location_of(i).bucket != buckets.location_of(missing).bucket)
                  CHECK(same_bits(results[i], expected[i]));
            }
            if (leaves) return 0;
            const auto second = pass(true);
            CHECK_MESSAGE(second.first.how == way::returned, second.first.message);
            for (std::size_t i = 0; i < expected.size(); ++i) CHECK(same_bits(second.second[i], expected[i]));
            return 0;
          });
          for (const auto& rank : ranks) REQUIRE_MESSAGE(rank.value, rank.description());
        }
      });
}

TEST_CASE("a parameter that is not marked, where ranks check for agreement: all of them are told which") {
  for_each_schedule([&](const auto& order, const std::string& name) {
    CAPTURE(name);
    for (const std::size_t missing : {0u, 4u, 8u}) {
      const auto ranks = on_ranks(3, [&](const adasum::thread_communicator& comm) {
        auto buckets =
            adasum::plan_bucketed<float>(adasum::serial_space{}, comm, parameters, bucket_bytes, order, checked);
        for (std::size_t i = 0; i < lengths.size(); ++i)
          if (comm.rank() != 1 || i != missing) buckets.ready(i);
        return end_of(std::vector<float>{}, [&](auto&) { buckets.wait(); });
      });
      for (const auto& rank : ranks) {
        REQUIRE_MESSAGE(rank.value, rank.description());
        CHECK(rank.value->how == way::agreement_error);
        CHECK(rank.value->message ==
              "rank 1: adasum::bucketed::wait: parameter " + std::to_string(missing) + " is not ready");
      }
    }
  });
}

TEST_CASE("a parameter without elements, in a bucket of its own, that is not marked on one rank") {
  for_each_schedule([&](const auto& order, const std::string& name) {
    CAPTURE(name);
    const auto ranks = on_ranks(3, [&](const adasum::thread_communicator& comm) {
      auto buckets = adasum::plan_bucketed<float>(adasum::serial_space{}, comm, {3, 0}, 0, order, unchecked);
      CHECK(buckets.buckets() == 2);
      buckets.ready(0);
      if (comm.rank() != 1) buckets.ready(1);
      auto end = end_of(std::vector<float>{}, [&](auto&) { buckets.wait(); });
      for (const std::size_t i : {0u, 1u}) buckets.ready(i);
      buckets.wait();
      return end;
    });
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      REQUIRE_MESSAGE(ranks[r].value, ranks[r].description());
      CHECK(ranks[r].value->how == (r == 1 ? way::bad_input : way::communication_error));
    }
  });
}

TEST_CASE("another plan in flight when a bucket is complete: refused, and it goes on when that has ended") {
  const auto ranks = on_ranks(2, [&](const adasum::thread_communicator& comm) {
    const adasum::serial_space exec;
    auto plan = adasum::plan_allreduce<float>(exec, comm, 5, unchecked);
    auto buckets = adasum::plan_bucketed<float>(exec, comm, {3}, 0, unchecked);
    auto gradient = counted(5);
    plan.start(gradient);
    std::ranges::fill(buckets.gradient(0), 1.0f);
    CHECK_THROWS_WITH_AS(buckets.ready(0), doctest::Contains("another plan is in flight"), adasum::bad_input);
    CHECK_THROWS_WITH_AS(buckets.ready(0), doctest::Contains("is ready already"), adasum::bad_input);
    plan.wait();
    buckets.wait();
    return buckets.gradient(0)[0];
  });
  for (const auto& rank : ranks) {
    REQUIRE_MESSAGE(rank.value, rank.description());
    CHECK(*rank.value == 1);
  }
}

namespace {

std::atomic<bool> one_wait_is_to_end{false};

}  // namespace

TEST_CASE("a rank that does not come: once a wait for it has ended, no bucket waits for it again") {
  constexpr int size = 3;
  std::atomic<int> thrown{0};
  adasum::set_interruption_check([] { return one_wait_is_to_end.exchange(false); });
  one_wait_is_to_end = true;
  const auto ranks = on_ranks(size, [&](const adasum::thread_communicator& comm) {
    auto buckets = adasum::plan_bucketed<float>(adasum::serial_space{}, comm, parameters, bucket_bytes, unchecked);
    const auto pass = [&] {
      auto mine = cut(gradients_of(size)[static_cast<std::size_t>(comm.rank())]);
      for (std::size_t i = mine.size(); i-- > 0;) buckets.ready(i, mine[i]);
      return end_of(std::vector<float>{}, [&](auto&) { buckets.wait(); });
    };
    if (comm.rank() == 0)  // comes late; if the others still wait by then, they do so for one of the other buckets
      for (const auto start = std::chrono::steady_clock::now();
           thrown < size - 1 && std::chrono::steady_clock::now() - start < patience / 3;)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    else
      CHECK(pass().how == way::communication_error);
    CHECK(++thrown > (comm.rank() == 0 ? size - 1 : 0));
    if (comm.rank() == 0) CHECK(pass().how == way::communication_error);
    const auto good = pass();
    CHECK_MESSAGE(good.how == way::returned, good.message);
    return 0;
  });
  adasum::set_interruption_check(nullptr);
  for (const auto& rank : ranks) REQUIRE_MESSAGE(rank.value, rank.description());
}

TEST_CASE("nonfinite_policy::raise: the error names the bucket; the other buckets are reduced") {
  const auto inputs = gradients_of(2);
  const auto expected = cut(expected_of(inputs, adasum::rules::adasum{}, adasum::schedules::automatic{}));
  const auto ranks = on_ranks(2, [&](const adasum::thread_communicator& comm) {
    auto buckets = adasum::plan_bucketed<float>(
        adasum::serial_space{}, comm, parameters, bucket_bytes,
        adasum::options{.check_agreement = false, .nonfinite = adasum::nonfinite_policy::raise});
    const auto before = cut(inputs[static_cast<std::size_t>(comm.rank())]);
    auto mine = before;
    if (comm.rank() == 1) mine[7][3] = std::numeric_limits<float>::infinity();
    for (std::size_t i = mine.size(); i-- > 0;) buckets.ready(i, mine[i]);
    CHECK_THROWS_WITH_AS(buckets.wait(),
                         "adasum: Inf or NaN in the gradient of rank 1 (segment 2), in bucket 0 (parameter 5 to 8)",
                         adasum::nonfinite_error);
    for (std::size_t i = 0; i < mine.size(); ++i)
      if (buckets.location_of(i).bucket != 0)
        CHECK(same_bits(mine[i], expected[i]));
      else if (i != 7)
        CHECK(same_bits(mine[i], before[i]));
    return 0;
  });
  for (const auto& rank : ranks) REQUIRE_MESSAGE(rank.value, rank.description());
}

TEST_CASE("nonfinite_policy::raise: a bucket of one parameter") {
  auto buckets = adasum::plan_bucketed<float>(adasum::serial_space{}, adasum::self_communicator{}, std::vector{3, 3}, 12,
                                              adasum::options{.nonfinite = adasum::nonfinite_policy::raise});
  std::vector<float> first(3, 1.0f), second(3, std::numeric_limits<float>::infinity());
  buckets.ready(1, second);
  buckets.ready(0, first);
  CHECK_THROWS_WITH_AS(buckets.wait(),
                       "adasum: Inf or NaN in the gradient of rank 0 (segment 0), in bucket 0 (parameter 1)",
                       adasum::nonfinite_error);
}

}  // namespace test_of_bucketed
