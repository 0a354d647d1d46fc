// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// No kernel and no copy is given elements of another type than its own: the engine knows them as bytes.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <adasum/adasum.hpp>

#include "support/complete_types.hpp"
#include "support/doctest_scalars.hpp"
#include "support/every_call.hpp"
#include "support/random_gradients.hpp"
#include "support/schedules.hpp"
#include "support/typed_memory_space.hpp"

namespace test_of_number_formats {

using namespace adasum;
using namespace adasum::test;

namespace {

const segments cut{21, 0, 500, 3};

/// What ranks do to gradients of T that the space has given. visit(communicator, space, gradient)
template <scalar T, class Visitor>
void on_typed_gradients(bool none_else, const Visitor& visit) {
  for (const int size : {1, 2, 3, 5})
    for (const auto kind : {gradient_kind::independent, gradient_kind::opposed}) {
      CAPTURE(size);
      const auto gradients = random_gradients<T>(static_cast<std::size_t>(size), cut.total(), 7, kind);
      const auto ranks = on_ranks(size, [&](const thread_communicator& comm) {
        typed_memory<T> mine(gradients[static_cast<std::size_t>(comm.rank())]);
        visit(comm, typed_memory_space{none_else}, std::span<T>(mine.data(), mine.size()));
        return true;
      });
      for (const auto& rank : ranks) CHECK_MESSAGE(rank.value, rank.description());
    }
}

/// Single calls and plans, by messages.
template <scalar T>
void check_schedule(const any_schedule& order, const options& choices) {
  on_typed_gradients<T>(true, [&](const auto& comm, const auto& space, auto mine) {
    adasum_allreduce(space, comm, mine, cut, order, choices);
    adasum_reduce_scatter(space, comm, mine, cut, order, choices);
    auto plan = plan_allreduce<T>(space, comm, cut, order, choices);
    plan(mine);
    plan.start(mine);
    while (!plan.test()) std::this_thread::yield();
    plan.wait();
  });
}

}  // namespace

TEST_CASE("by messages: all memory is the gradient's or the space's, and holds what it was made for") {
  for_each_message_schedule([](const any_schedule& order, const std::string& name) {
    CAPTURE(name);
    check_schedule<float>(order, {.nonfinite = nonfinite_policy::exclude});
  });
}

TEST_CASE_TEMPLATE("elements of every format", T, ADASUM_TEST_FORMATS) {
  check_schedule<T>(schedules::recursive_halving{}, {});
  check_schedule<T>(schedules::all_to_all{}, {.keep_plan = false});
}

TEST_CASE("elements of 16 bits on their way") {
  for (const auto format : {wire_format::bfloat16, wire_format::binary16}) {
    check_schedule<float>(schedules::recursive_halving{}, {.wire = format});
    check_schedule<float>(schedules::all_to_all{}, {.wire = format});
  }
}

TEST_CASE("in memory that ranks share, and in the plan's own") {
  for (const auto& order : {any_schedule(schedules::shared_memory{}),
                            any_schedule(schedules::shared_memory{.radix = 2}), any_schedule(schedules::automatic{})})
    on_typed_gradients<float>(false, [&](const auto& comm, const auto& space, auto mine) {
      auto plan = plan_allreduce<float>(space, comm, cut, order);
      plan(mine);
      std::ranges::copy(mine, plan.buffer().begin());
      plan();
    });
}

TEST_CASE("rules of all gradients at once, and shards") {
  on_typed_gradients<float>(true, [&](const auto& comm, const auto& space, auto mine) {
    const options by_messages{.keep_plan = false};
    combine_allreduce(space, comm, mine, cut, rules::geometric_median{}, schedules::all_to_all{}, by_messages);
    combine_allreduce(space, comm, mine, cut, rules::multi_krum{}, schedules::all_to_all{}, by_messages);
    if (comm.size() % 2 == 0)
      adasum_allreduce(space, comm, mine, shard{comm.rank() / 2, comm.rank() % 2, {}}, cut, by_messages);
  });
}

TEST_CASE("calls of one process: few gradients, many, and one after another") {
  for (const std::size_t count : {2u, 5u, 40u})
    for (const auto kind : {gradient_kind::independent, gradient_kind::opposed}) {
      std::vector<typed_memory<float>> all;
      for (const auto& gradient : random_gradients<float>(count, 3000, 3, kind)) all.emplace_back(gradient);
      std::vector<std::span<const float>> given;
      for (const auto& one : all) given.emplace_back(one.data(), one.size());
      typed_memory<float> out(3000);
      const std::span result(out.data(), out.size());
      const typed_memory_space space{true};
      combine(space, given, result, rules::adasum{}, segments{1000, 0, 2000});
      combine(space, given, result, rules::geometric_median{});
      adasum_pair(space, given[0], given[1], result);
      auto total = plan_accumulator<float>(space, 3000);
      for (const auto& one : given) total.add(one);
    }
}

TEST_CASE("every public call, of memory of the caller's") {
  const question_counts asked;
  run_every_local_call<float>(typed_memory_space{}, complete_pairwise_rule{asked}, complete_gram_rule{asked});
  run_every_local_call<double>(typed_memory_space{}, complete_pairwise_rule{asked}, complete_gram_rule{asked});
  const auto gradients = random_gradients<float>(3, call_cut.total(), 5);
  for (const auto& rank : on_ranks(3, [&](const thread_communicator& comm) {
         run_every_collective_call<float>(typed_memory_space{}, comm, complete_pairwise_rule{asked},
                                          schedules::automatic{}, gradients);
         return true;
       }))
    CHECK_MESSAGE(rank.value, rank.description());
}

TEST_CASE("elements of another type are noticed, and those that nobody gave") {
  const typed_memory_space space{true};
  const auto doubles = space.allocate<double>(8);
  auto floats = space.allocate<float>(8);
  const segments whole{8};
  const slice all{whole, {0, 8}};
  double gram = 0;
  const auto measured = [&](const float* elements) {
    return [&, elements] { space.measure<float>(all, std::span(&elements, 1), &gram); };
  };
  CHECK_NOTHROW(measured(floats.data())());
  CHECK_THROWS_WITH_AS(measured(reinterpret_cast<const float*>(doubles.data()))(),
                       "measure: of elements of another type", wrong_element_type);
  CHECK_THROWS_WITH_AS(measured(floats.data() + 1)(), "measure: over the end of memory", wrong_element_type);
  const std::vector<float> others(8);
  CHECK_THROWS_WITH_AS(measured(others.data())(), "measure: of memory that the space has not given",
                       wrong_element_type);
  CHECK_THROWS_AS(space.copy(floats.data(), reinterpret_cast<float*>(const_cast<double*>(doubles.data())), 8),
                  wrong_element_type);
}

}  // namespace test_of_number_formats
