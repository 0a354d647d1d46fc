// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <adasum/adasum.hpp>

#include "support/bits.hpp"
#include "support/destroyed_plan.hpp"
#include "support/disagreements.hpp"
#include "support/foreign.hpp"
#include "support/shards.hpp"
#include "support/thread_reduction.hpp"

namespace test_of_shards_failures {

/// Shards that do not fit together, ranks that disagree or fail, where gradients are cut over several ranks: an error that
/// names it, and none of them hangs. (A hang ends the program: see on_each.)

using namespace adasum::test;
using adasum::shard;

namespace {

const adasum::serial_space exec;

/// call(comm, gradient, choices) on four ranks: all get an error that says so, nothing changes, and then the communicator
/// works.
template <class Call>
void check_refused(const std::string& mentions, const Call& call) {
  CAPTURE(mentions);
  for (const auto& choices : {checked, unchecked}) {
    CAPTURE(choices.check_agreement);
    const auto ranks = on_ranks(4, [&](const adasum::thread_communicator& comm) {
      auto end = end_of(counted(10), [&](auto& g) { call(comm, g, choices); });
      auto good = counted(10);
      adasum::adasum_allreduce(exec, comm, good, shard{comm.rank() / 2, comm.rank() % 2});
      return end;
    });
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      REQUIRE_MESSAGE(ranks[r].value, "rank ", r, " ", ranks[r].description());
      const auto& end = *ranks[r].value;
      CHECK_MESSAGE(end.how != way::returned, "rank ", r);
      CHECK(end.unchanged);
      if (choices.check_agreement || end.how == way::bad_input)
        CHECK_MESSAGE(end.message.find(mentions) != std::string::npos, "rank ", r, ": ", end.message);
      else
        CHECK(end.how == way::communication_error);
    }
  }
}

/// The same, where each rank says which shard it has.
void check_refused(const std::string& mentions, const std::vector<shard>& where) {
  check_refused(mentions, [&](const auto& comm, auto& g, const auto& choices) {
    adasum::adasum_allreduce(exec, comm, g, where[static_cast<std::size_t>(comm.rank())], adasum::segments{4, 6},
                             choices);
  });
}

/// Does not choose by schedule_input::of_whole(), as it should.
struct by_own_length {
  static constexpr std::string_view name = "by_own_length";
  static constexpr bool supports_gram_rules = false;
  std::vector<adasum::stage> stages(int rank, int size, const adasum::schedule_input& input) const {
    if (input.length > 10) return adasum::schedules::recursive_doubling{}.stages(rank, size, input);
    return adasum::schedules::all_to_all{}.stages(rank, size, input);
  }
};

}  // namespace

TEST_CASE("shards that do not fit together") {
  check_refused("rank 1 and rank 3 both say that they have shard 1 of replica 0", {{0, 0}, {0, 1}, {1, 0}, {0, 1}});
  check_refused("nobody has shard 1 of replica 0; the highest numbers are replica 2 (rank 1) and shard 1 (rank 1)",
                {{0, 0}, {2, 1}, {1, 0}, {1, 1}});
  check_refused("nobody has shard 0 of replica 0; the highest numbers are replica 2 (rank 3) and shard 1 (rank 1)",
                {{1, 0}, {1, 1}, {2, 0}, {2, 1}});
  check_refused("rank 2 says that it has shard 0 of replica -1", {{0, 0}, {0, 1}, {-1, 0}, {0, 1}});
  check_refused("nobody has shard 0 of replica 3; the highest numbers are replica 2147483647 (rank 1)",
                {{0, 0}, {2147483647, 0}, {1, 0}, {2, 0}});
}

TEST_CASE("replicated segments that cannot be, or are others elsewhere") {
  check_refused("the shard lists segment 2 as replicated, but the shard has only 2 segments",
                {{0, 0, {2}}, {0, 1, {2}}, {1, 0, {2}}, {1, 1, {2}}});
  check_refused("the shard lists segment 2 as replicated, but the shard has only 2 segments",
                {{0, 0}, {0, 1}, {1, 0}, {1, 1, {2}}});
  check_refused("the replicated segments must be in ascending order: 0 follows 1",
                {{0, 0}, {0, 1, {1, 0}}, {1, 0}, {1, 1}});
  check_refused("rank 0 and rank 3 disagree on which segments are replicated",
                {{0, 0, {1}}, {0, 1, {1}}, {1, 0, {1}}, {1, 1, {0}}});
  check_refused("disagree on which segments are replicated, or on their lengths",
                [](const auto& comm, auto& g, const auto& choices) {
                  const auto segs = comm.rank() % 2 == 0 ? adasum::segments{4, 6} : adasum::segments{6, 4};
                  adasum::adasum_allreduce(exec, comm, g, shard{comm.rank() / 2, comm.rank() % 2, {0}}, segs, choices);
                });
}

TEST_CASE("replicas that are cut differently") {
  check_refused(
      "rank 1 and rank 3 have shard 1 of replicas 0 and 1, which must be cut alike; the boundaries of their segments",
      [](const auto& comm, auto& g, const auto& choices) {
        const auto segs = comm.rank() == 3 ? adasum::segments{3, 7} : adasum::segments{4, 6};
        adasum::adasum_allreduce(exec, comm, g, shard{comm.rank() / 2, comm.rank() % 2}, segs, choices);
      });
  check_refused("they have 10 and 11 elements", [](const auto& comm, auto& g, const auto& choices) {
    auto longer = counted(11);
    adasum::adasum_allreduce(exec, comm, comm.rank() == 3 ? longer : g, shard{comm.rank() / 2, comm.rank() % 2},
                             choices);
  });
}

TEST_CASE("some ranks have shards and others whole gradients, or other numbers of segments") {
  check_refused("on the kind of gradients: rank 0 has shards of gradients, rank 2 has whole gradients",
                [](const auto& comm, auto& g, const auto& choices) {
                  if (comm.rank() == 2) return adasum::adasum_allreduce(exec, comm, g, choices), void();
                  adasum::adasum_allreduce(exec, comm, g, shard{comm.rank() / 2, comm.rank() % 2}, choices);
                });
  check_refused("on the number of segments", [](const auto& comm, auto& g, const auto& choices) {
    const auto segs = comm.rank() % 2 == 1 ? adasum::segments{3, 3, 4} : adasum::segments{4, 6};
    adasum::adasum_allreduce(exec, comm, g, shard{comm.rank() / 2, comm.rank() % 2}, segs, choices);
  });
  check_refused("the gradient is a null pointer", [](const auto& comm, auto& g, const auto& choices) {
    const std::span<float> elements(comm.rank() == 1 ? nullptr : g.data(), g.size());
    adasum::adasum_allreduce(exec, comm, elements, shard{comm.rank() / 2, comm.rank() % 2}, choices);
  });
}

namespace {

/// Halving that says what it cannot.
struct false_promise : adasum::schedules::recursive_halving {
  static constexpr std::string_view name = "false_promise";
  static constexpr bool supports_gram_rules = true;
};

}  // namespace

TEST_CASE("schedules that cannot") {
  check_refused("shards are reduced by messages", [](const auto& comm, auto& g, const auto& choices) {
    adasum::adasum_allreduce(exec, comm, g, shard{comm.rank() / 2, comm.rank() % 2}, adasum::schedules::shared_memory{},
                             choices);
  });
  check_refused("needs all inner products at once", [](const auto& comm, auto& g, const auto& choices) {
    adasum::combine_allreduce(exec, comm, g, shard{comm.rank(), 0}, adasum::rules::adacons{}, false_promise{}, choices);
  });
}

TEST_CASE("a schedule that would have shards of different lengths meet in different ways") {
  const auto ranks = on_ranks(8, [&](const adasum::thread_communicator& comm) {
    auto g = counted(comm.rank() % 2 == 0 ? 10 : 11);
    return end_of(std::move(g), [&](auto& gradient) {
      adasum::adasum_allreduce(exec, comm, gradient, shard{comm.rank() / 2, comm.rank() % 2}, by_own_length{}, checked);
    });
  });
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    REQUIRE_MESSAGE(ranks[r].value, "rank ", r, " ", ranks[r].description());
    CHECK(ranks[r].value->how != way::returned);
    CHECK(ranks[r].value->unchanged);
    CHECK_MESSAGE(ranks[r].value->message.find(
                      "by_own_length makes different stages for shards of different lengths") != std::string::npos,
                  "rank ", r, ": ", ranks[r].value->message);
  }
}

TEST_CASE("a shard that is wrong in a later call") {
  const auto ranks = on_ranks(4, [&](const adasum::thread_communicator& comm) {
    const shard mine{comm.rank() / 2, comm.rank() % 2};
    auto g = counted(10);
    adasum::adasum_allreduce(exec, comm, g, mine, checked);
    auto end = end_of(counted(10), [&](auto& again) {
      adasum::adasum_allreduce(exec, comm, again, comm.rank() == 3 ? shard{0, 0} : mine, checked);
    });
    g = counted(10);
    adasum::adasum_allreduce(exec, comm, g, mine, checked);
    return end;
  });
  for (const auto& rank : ranks) {
    REQUIRE_MESSAGE(rank.value, rank.description());
    CHECK(rank.value->how == way::bad_input);
    CHECK(rank.value->message.find("rank 0 and rank 3 both say that they have shard 0 of replica 0") !=
          std::string::npos);
    CHECK(rank.value->unchanged);
  }
}

TEST_CASE("calls that are alike on some ranks alone: other lengths of one shard, ranks that change places") {
  for (const auto& choices : {checked, unchecked}) {
    const auto ranks = on_ranks(4, [&](const adasum::thread_communicator& comm) {
      const shard mine{comm.rank() / 2, comm.rank() % 2};
      for (const std::size_t more : {0u, 2u, 0u}) {
        auto g = counted(mine.index == 1 ? 10 + more : 10);
        adasum::adasum_allreduce(exec, comm, g, mine, choices);
      }
      for (const int flip : {0, 1, 0}) {
        auto g = counted(10);
        const shard now{mine.index == 1 ? (mine.replica + flip) % 2 : mine.replica, mine.index};
        adasum::adasum_allreduce(exec, comm, g, now, choices);
      }
      // Long shards on one rank, short ones on the other: no rank may forget what another remembers.
      for (const int turn : {0, 1})
        for (std::size_t call = 0; call < 70; ++call) {
          auto g = counted(mine.index == 1 ? 4096 + 16 * call : 8 + call);
          adasum::adasum_allreduce(exec, comm, g, mine, choices);
          static_cast<void>(turn);
        }
      return true;
    });
    for (const auto& rank : ranks) REQUIRE_MESSAGE(rank.value, rank.description());
  }
}

namespace {

const cutting cut(cutting::by::segments, {17, 1, 30, 12}, {3}, 2);

/// Segment 2 cancels between neighbours: it is recombined, with more sums.
std::vector<std::vector<double>> gradients_of(std::size_t replicas) {
  auto gradients = random_gradients<double>(replicas, cut.whole().total(), 11);
  for (std::size_t r = 1; r < replicas; r += 2)
    for (auto x = cut.whole().offset(2); x < cut.whole().offset(3); ++x) gradients[r][x] = -gradients[r - 1][x];
  return gradients;
}

/// Lets one rank fail at its first, second, … call of a rule or kernel, until it gets through: no rank waits for ever, a
/// rank that returns has what it should, and the next reduction is right.
template <class Reduce>
void check_failures_midway(std::size_t replicas, const Reduce& reduce) {
  const auto gradients = gradients_of(replicas);
  const auto where = places(replicas, cut, numbering::random);
  for (int culprit = 0; culprit < static_cast<int>(where.size()); ++culprit) {
    bool failed = true;
    for (int calls = 0; std::exchange(failed, false); ++calls) {
      CAPTURE(culprit);
      CAPTURE(calls);
      const auto ranks = on_ranks(static_cast<int>(where.size()), [&](const adasum::thread_communicator& comm) {
        const auto& mine = where[static_cast<std::size_t>(comm.rank())];
        auto midway =
            cut.shard_of(gradients[static_cast<std::size_t>(mine.replica)], static_cast<std::size_t>(mine.index));
        auto afterwards = midway;
        auto end = end_of(midway, [&](auto& g) {
          reduce(countdown(comm.rank() == culprit ? calls : -1), comm, g, mine);
          midway = g;
        });
        reduce(countdown(-1), comm, afterwards, mine);
        if (end.how == way::returned && !same_bits(midway, afterwards)) end.message = "other bits";
        return end;
      });
      for (std::size_t r = 0; r < ranks.size(); ++r) {
        REQUIRE_MESSAGE(ranks[r].value, "rank ", r, " ", ranks[r].description());
        const auto& end = *ranks[r].value;
        CHECK(end.message != "other bits");
        if (static_cast<int>(r) == culprit)
          failed = end.how == way::other;
        else
          CHECK((end.how == way::returned || end.how == way::communication_error));
      }
    }
  }
}

}  // namespace

TEST_CASE("a rank whose rule or kernel fails midway keeps nobody waiting") {
  for_each_message_schedule([](const auto& order, const std::string& name) {
    CAPTURE(name);
    for (const std::size_t replicas : {2u, 3u}) {
      check_failures_midway(replicas, [&](const countdown& until, const auto& comm, auto& g, const shard& mine) {
        adasum::combine_allreduce(exec, comm, g, mine, cut.segments_of(static_cast<std::size_t>(mine.index)),
                                  failing_rule{until}, order, unchecked);
      });
      check_failures_midway(replicas, [&](const countdown& until, const auto& comm, auto& g, const shard& mine) {
        adasum::adasum_allreduce(failing_space{until, exec}, comm, g, mine,
                                 cut.segments_of(static_cast<std::size_t>(mine.index)), order, unchecked);
      });
    }
  });
}

TEST_CASE("a plan for shards that is destroyed in the middle of a run keeps nobody waiting") {
  const auto gradients = gradients_of(3);
  const auto where = places(3, cut, numbering::random);
  const auto shard_of = [&](const auto& comm) -> const shard& { return where[static_cast<std::size_t>(comm.rank())]; };
  for (int culprit = 0; culprit < 6; ++culprit)
    check_destroyed_midway(
        6, culprit,
        [&](const auto& comm) {
          const auto& mine = shard_of(comm);
          return adasum::plan_allreduce<double>(exec, comm, cut.segments_of(static_cast<std::size_t>(mine.index)), mine,
                                                unchecked);
        },
        [&](const auto& comm) {
          const auto& mine = shard_of(comm);
          return cut.shard_of(gradients[static_cast<std::size_t>(mine.replica)], static_cast<std::size_t>(mine.index));
        });
}

}  // namespace test_of_shards_failures
