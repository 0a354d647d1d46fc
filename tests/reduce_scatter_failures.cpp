// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <adasum/adasum.hpp>

#include "support/destroyed_plan.hpp"
#include "support/disagreements.hpp"
#include "support/foreign.hpp"
#include "support/parts.hpp"
#include "support/random_gradients.hpp"
#include "support/refusal.hpp"
#include "support/sizes.hpp"
#include "support/thread_reduction.hpp"

namespace test_of_reduce_scatter_failures {

/// Bad parts, ranks that disagree or fail, where ranks get parts of the result or one of them all of it: an error that names
/// it, and none of them hangs. (A hang ends the program: see on_each.)

using namespace adasum::test;
using adasum::parts;

namespace {

const adasum::serial_space exec;
const adasum::segments segs{17, 0, 30, 4};

const auto rank_counts = few_or_all({3, 4}, {2, 3, 4, 5, 8, 11});

/// call(comm, gradient) on three ranks, of which one differs: all get an error that says so, and nothing changes. Then the
/// communicator works.
template <class Call>
void check_refused(const char* mentions, const Call& call) {
  CAPTURE(std::string(mentions));
  for (const bool checks : {true, false})
    for (int culprit = 0; culprit < 3; ++culprit) {
      CAPTURE(checks);
      CAPTURE(culprit);
      const auto ranks = on_ranks(3, [&](const adasum::thread_communicator& comm) {
        auto end =
            end_of(counted(10), [&](auto& g) { call(comm, g, comm.rank() == culprit, checks ? checked : unchecked); });
        auto good = counted(10);
        adasum::adasum_reduce_scatter(exec, comm, good);
        return end;
      });
      for (int r = 0; r < 3; ++r) {
        const auto& rank = ranks[static_cast<std::size_t>(r)];
        REQUIRE_MESSAGE(rank.value, rank.description());
        CHECK_MESSAGE(rank.value->how != way::returned, "rank ", r);
        CHECK(rank.value->unchanged);
        if (checks)
          CHECK_MESSAGE(rank.value->message.find(mentions) != std::string::npos, "rank ", r, ": ", rank.value->message);
        else
          CHECK((rank.value->how == way::communication_error || rank.value->how == way::bad_input));
      }
    }
}

}  // namespace

TEST_CASE("parts that cannot be, on one rank") {
  check_refused("2 parts for 3 ranks", [](const auto& comm, auto& g, bool differs, const auto& choices) {
    adasum::adasum_reduce_scatter(exec, comm, g, differs ? parts{5, 5} : parts{5, 5, 0}, choices);
  });
  check_refused("the parts hold 9 elements in all, the gradient has 10",
                [](const auto& comm, auto& g, bool differs, const auto& choices) {
                  adasum::adasum_reduce_scatter(exec, comm, g, differs ? parts{4, 5, 0} : parts{5, 5, 0}, choices);
                });
  check_refused("adasum::plan_reduce_scatter: the parts hold 11 elements", [](const auto& comm, auto&, bool differs,
                                                                              const auto& choices) {
    adasum::plan_reduce_scatter<float>(exec, comm, 10, differs ? parts{6, 5, 0} : parts{5, 5, 0}, choices);
  });
  check_refused("adasum::combine_reduce_scatter: 4 parts for 3 ranks",
                [](const auto& comm, auto& g, bool differs, const auto& choices) {
                  adasum::combine_reduce_scatter(exec, comm, g, differs ? parts{0, 0, 0, 10} : parts{0, 0, 10},
                                                 adasum::rules::mean{}, choices);
                });
}

TEST_CASE("ranks that disagree about parts, or who gets the result") {
  check_refused("on the parts: rank 0 has", [](const auto& comm, auto& g, bool differs, const auto& choices) {
    adasum::adasum_reduce_scatter(exec, comm, g, differs ? parts{4, 6, 0} : parts{5, 5, 0}, choices);
  });
  check_refused("on the parts: rank 0 has", [](const auto& comm, auto& g, bool differs, const auto& choices) {
    adasum::adasum_reduce_scatter(exec, comm, g, differs ? parts{0, 10, 0} : parts{0, 0, 10}, choices);
  });
  check_refused("on the destination of the result", [](const auto& comm, auto& g, bool differs, const auto& choices) {
    differs ? adasum::adasum_reduce_scatter(exec, comm, g, choices) : adasum::adasum_allreduce(exec, comm, g, choices);
  });
  check_refused("on the destination of the result", [](const auto& comm, auto& g, bool differs, const auto& choices) {
    differs ? adasum::adasum_reduce_scatter(exec, comm, g, parts{10, 0, 0}, choices)
            : adasum::adasum_allreduce(exec, comm, g, choices);
  });
  check_refused("length of the gradient", [](const auto& comm, auto& g, bool differs, const auto& choices) {
    if (!differs) return adasum::adasum_reduce_scatter(exec, comm, g, choices), void();
    auto longer = counted(11);
    adasum::adasum_reduce_scatter(exec, comm, longer, choices);
  });
}

TEST_CASE("even parts and the same parts written out are one call, also when it is made again") {
  const auto ranks = on_ranks(2, [](const adasum::thread_communicator& comm) {
    std::vector<float> gradient(1000, 1.0f);
    for (int call = 0; call < 3; ++call)
      if (call == 0 && comm.rank() == 0)
        adasum::combine_reduce_scatter(adasum::serial_space{}, comm, gradient, adasum::rules::adasum{});
      else
        adasum::combine_reduce_scatter(adasum::serial_space{}, comm, gradient, adasum::rules::adasum{},
                                       parts{500, 500});
    return 0;
  });
  for (const auto& rank : ranks) REQUIRE_MESSAGE(rank.value, rank.description());
}

TEST_CASE("parts of many ranks that differ only behind what a message has room for") {
  const auto ranks = on_ranks(40, [&](const adasum::thread_communicator& comm) {
    std::vector<int> lengths(40, 100);
    if (comm.rank() == 7) {
      ++lengths[38];
      --lengths[39];
    }
    return end_of(counted(4000),
                  [&](auto& g) { adasum::adasum_reduce_scatter(exec, comm, g, parts(lengths), checked); });
  });
  for (const auto& rank : ranks) {
    REQUIRE_MESSAGE(rank.value, rank.description());
    CHECK(rank.value->how == way::agreement_error);
    CHECK(rank.value->message.find("on the parts: those of rank 0 and of rank 7 differ") != std::string::npos);
  }
}

namespace {

/// visit(make, name, size, culprit), where make(comm, order, rule) is a plan with uneven parts, or all of it for one rank.
template <class Visitor>
void for_each_culprit(const Visitor& visit) {
  for_each_schedule([&](const auto& order, const std::string& name) {
    for (const int size : rank_counts)
      for (int culprit = 0; culprit < size; ++culprit) {
        CAPTURE(name);
        CAPTURE(size);
        CAPTURE(culprit);
        visit(
            [&](const auto& comm) {
              return adasum::plan_reduce_scatter<float>(exec, comm, segs, some_parts(segs.total(), comm.size())[1],
                                                        adasum::rules::adasum{}, order, unchecked);
            },
            size, culprit);
        visit(
            [&](const auto& comm) {
              return adasum::plan_reduce_scatter<float>(exec, comm, segs, some_parts(segs.total(), comm.size())[2],
                                                        adasum::rules::mean{}, order, unchecked);
            },
            size, culprit);
      }
  });
}

const std::vector<float>& gradient_of(int rank) {
  static const auto all = random_gradients<float>(16, segs.total(), 29);
  return all[static_cast<std::size_t>(rank)];
}

}  // namespace

TEST_CASE("a gradient of another length: an error on all ranks, and the plan works again") {
  for_each_culprit([](const auto& make, int size, int culprit) {
    const auto ranks = on_ranks(size, [&](const adasum::thread_communicator& comm) {
      auto plan = make(comm);
      auto bad = gradient_of(comm.rank()), good = bad;
      if (comm.rank() == culprit) bad.push_back(0);
      auto end = end_of(bad, [&](auto& g) { plan(g); });
      plan(good);
      return end;
    });
    for (int r = 0; r < size; ++r) {
      const auto& rank = ranks[static_cast<std::size_t>(r)];
      REQUIRE_MESSAGE(rank.value, rank.description());
      CHECK_MESSAGE(rank.value->how == (r == culprit ? way::bad_input : way::communication_error), "rank ", r, " ",
                    to_string(rank.value->how), ": ", rank.value->message);
    }
  });
}

TEST_CASE("a plan that is destroyed in the middle of a run keeps nobody waiting") {
  for_each_culprit([](const auto& make, int size, int culprit) {
    check_destroyed_midway(size, culprit, make, [](const auto& comm) { return gradient_of(comm.rank()); });
  });
}

namespace {

/// Lets one rank fail at its first, second, … call of a rule or kernel, until it gets through. Ranks that need nothing from
/// it any more return what they should.
template <class Reduce>
void check_failures_midway(int size, const Reduce& reduce) {
  for (int culprit = 0; culprit < size; ++culprit) {
    bool failed = true;
    for (int calls = 0; std::exchange(failed, false); ++calls) {
      CAPTURE(culprit);
      CAPTURE(calls);
      const auto ranks = on_ranks(size, [&](const adasum::thread_communicator& comm) {
        auto midway = gradient_of(comm.rank()), afterwards = midway;
        const auto part = some_parts(segs.total(), size)[1].of_rank(static_cast<std::size_t>(comm.rank()));
        auto end = end_of(midway, [&](auto& g) {
          reduce(countdown(comm.rank() == culprit ? calls : -1), comm, g);
          midway = g;
        });
        reduce(countdown(-1), comm, afterwards);
        if (end.how == way::returned && !same_elements(midway, afterwards, part)) end.message = "other bits";
        return end;
      });
      for (int r = 0; r < size; ++r) {
        const auto& rank = ranks[static_cast<std::size_t>(r)];
        REQUIRE_MESSAGE(rank.value, "rank ", r, " ", rank.description());
        if (rank.value->how == way::returned)
          CHECK_MESSAGE(rank.value->message.empty(), "rank ", r, ": ", rank.value->message);
        else if (r == culprit)
          CHECK(rank.value->how == way::other);
        else
          CHECK_MESSAGE(rank.value->how == way::communication_error, to_string(rank.value->how), ": ",
                        rank.value->message);
      }
      failed = ranks[static_cast<std::size_t>(culprit)].value->how != way::returned;
    }
  }
}

}  // namespace

TEST_CASE("a rule or a kernel that throws midway") {
  for (const int size : few_or_all({3, 4}, {2, 3, 4, 5}))
    for_each_schedule([&](const auto& order, const std::string& name) {
      CAPTURE(name);
      CAPTURE(size);
      const auto given = some_parts(segs.total(), size)[1];
      check_failures_midway(size, [&](const countdown& until, const auto& comm, auto& gradient) {
        adasum::combine_reduce_scatter(exec, comm, gradient, given, failing_rule{until}, segs, order, unchecked);
      });
      check_failures_midway(size, [&](const countdown& until, const auto& comm, auto& gradient) {
        adasum::combine_reduce_scatter(failing_space{until, {}}, comm, gradient, given, adasum::rules::adasum{}, segs,
                                       order, unchecked);
      });
    });
}

}  // namespace test_of_reduce_scatter_failures
