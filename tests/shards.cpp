// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include <adasum/adasum.hpp>

#include "support/bits.hpp"
#include "support/parts.hpp"
#include "support/shards.hpp"
#include "support/thread_reduction.hpp"

namespace test_of_shards {

/// Replicas whose gradients are cut over several ranks get the shards of what whole gradients would give.

using namespace adasum::test;

namespace {

const adasum::serial_space exec;
constexpr auto every_numbering = {numbering::replicas_first, numbering::shards_first, numbering::random};
constexpr auto every_cut = {cutting::by::flat, cutting::by::segments, cutting::by::last};

/// But for last digits; numbers of the tests are near 1, or far above.
bool near(double a, double b) {
  return std::abs(a - b) <= 1e-12 * (1 + std::abs(a) + std::abs(b)) || (std::isnan(a) && std::isnan(b)) || a == b;
}

/// Whether two reports say the same but for last digits.
bool near(const adasum::report& a, const adasum::report& b) {
  bool found = a.segments() == b.segments() && a.contributions() == b.contributions() && a.measured() == b.measured() &&
               a.excluded() == b.excluded() && a.recombined_segments() == b.recombined_segments();
  for (std::size_t k = 0; found && k < a.segments(); ++k) {
    found = near(a.result_norm(k), b.result_norm(k));
    for (std::size_t i = 0; found && i < a.contributions(); ++i)
      found = near(a.norm(i, k), b.norm(i, k)) && near(a.weight(i, k), b.weight(i, k));
  }
  return found;
}

/// Whether inner products are exact where gradients are whole numbers: no combination of them is measured again.
template <class Rule, class Schedule>
bool is_exact(const Schedule& order, std::size_t replicas) {
  if (std::is_same_v<Schedule, adasum::schedules::automatic>) return replicas <= 2;  // whole gradients go another way
  const int size = static_cast<int>(replicas);
  const auto stages = order.stages(0, size, {.length = 64, .element_size = 8, .along_tree = adasum::tree_rule<Rule>});
  return replicas <= 2 || !adasum::needs_gram<Rule> || adasum::is_one_stage_of_all(stages, size);
}

/// Reduces shards of these gradients by a plan twice, by a plan's buffer and by a single call. What each rank finds wrong:
/// another result than with whole gradients (where inner products are exact, other bits), or another report.
template <class T, class Rule, class Schedule>
void check(const std::vector<std::vector<T>>& gradients, const cutting& cut, const Rule& rule, const Schedule& order,
           const std::vector<adasum::shard>& where, const adasum::options& choices = {.check_agreement = false}) {
  const auto whole = reduce_on_threads<T>(gradients, cut.whole(), rule, order, choices);
  CAPTURE(std::string(Rule::name));
  const bool exact = is_exact<Rule>(order, gradients.size());
  require_none(on_ranks(static_cast<int>(where.size()), [&](const adasum::thread_communicator& comm) {
    complaints found;
    const auto& mine = where[static_cast<std::size_t>(comm.rank())];
    const auto s = static_cast<std::size_t>(mine.index);
    const auto segs = cut.segments_of(s);
    const auto before = cut.shard_of(gradients[static_cast<std::size_t>(mine.replica)], s);
    const auto expected = cut.shard_of(whole.front().gradient, s);
    const auto compare = [&](const std::vector<T>& got, const adasum::report& report, const char* how) {
      const auto& told = whole[static_cast<std::size_t>(mine.replica)].found;
      const auto is_near = [](T a, T b) { return near(static_cast<double>(a), static_cast<double>(b)); };
      if (exact ? !same_bits(got, expected) : !std::ranges::equal(got, expected, is_near))
        found += std::string(how) + ": another result; ";
      if (!near(report, told)) found += std::string(how) + ": another report; ";
    };
    auto plan = adasum::plan_allreduce<T>(exec, comm, segs, rule, order, choices, mine);
    for (int run = 0; run < 2; ++run) {
      auto gradient = before;
      const auto& report = plan(gradient);
      compare(gradient, report, "plan");
    }
    const auto buffer = plan.buffer();
    std::ranges::copy(before, buffer.begin());
    const auto& report = plan();
    compare({buffer.begin(), buffer.end()}, report, "buffer");
    for (int run = 0; run < 2; ++run) {
      auto gradient = before;
      const auto once = adasum::combine_allreduce(exec, comm, gradient, mine, segs, rule, order, choices);
      compare(gradient, once, "call");
    }
    return found;
  }));
}

/// visit(number of replicas, cutting) for some of them: with each number of replicas each number of shards, cut in one way
/// after the other; and in every way with three of both.
template <class Visitor>
void for_each_cut(const Visitor& visit) {
#ifdef ADASUM_TEST_SANITIZED  // where each run takes ten times as long
  const std::vector<std::size_t> replica_counts{3, 4};
#else
  const std::vector<std::size_t> replica_counts{1, 2, 3, 4, 6, 11};
#endif
  std::size_t turn = 0;
  for (const std::size_t replicas : replica_counts)
    for (const std::size_t shards : {1u, 2u, 3u, 5u}) {
      if (replicas * shards > 24) continue;
      const bool all = replicas == 3 && shards == 3;
      std::size_t way = 0;
      for (const auto how : every_cut)
        for (const auto& replicated : {std::vector<std::size_t>{}, {0, 1, 3, 4}})
          if (all || way++ == turn % 6) {
            CAPTURE(replicas);
            CAPTURE(shards);
            CAPTURE(static_cast<int>(how));
            CAPTURE(replicated.size());
            visit(replicas, cutting(how, {40, 0, 201, 1, 90, 33}, replicated, shards));
          }
      ++turn;
    }
}

}  // namespace

TEST_CASE("adasum by every schedule gives what it gives of whole gradients") {
  for_each_cut([](std::size_t replicas, const cutting& cut) {
    const auto gradients = whole_numbers<double>(replicas, cut.whole().total(), replicas + cut.shards());
    for_each_message_schedule([&](const auto& order, const std::string& name) {
      CAPTURE(name);
      check(gradients, cut, adasum::rules::adasum{}, order, places(replicas, cut, numbering::random));
    });
  });
}

TEST_CASE("ranks are numbered in any order") {
  const cutting cut(cutting::by::segments, {40, 201, 7}, {2}, 3);
  const auto gradients = whole_numbers<double>(4, cut.whole().total(), 5);
  for (const auto how : every_numbering)
    check(gradients, cut, adasum::rules::adasum{}, adasum::schedules::automatic{}, places(4, cut, how),
          {.check_agreement = true});
}

TEST_CASE("rules for all gradients at once, for the whole model, and without inner products") {
  for_each_cut([](std::size_t replicas, const cutting& cut) {
    const auto gradients = whole_numbers<double>(replicas, cut.whole().total(), replicas + 7);
    const auto where = places(replicas, cut, numbering::shards_first);
    const adasum::schedules::recursive_halving order{};
    check(gradients, cut, adasum::rules::geometric_median{}, adasum::schedules::all_to_all{}, where);
    check(gradients, cut, adasum::rules::adacons{}, adasum::schedules::all_to_all{}, where);
    check(gradients, cut, adasum::rules::mean{}, order, where);
    check(gradients, cut, adasum::rules::sum{}, order, where,
          {.check_agreement = false, .measure = adasum::measuring::when_needed});
  });
}

TEST_CASE("nodes are reduced first where the schedule says so") {
  const cutting cut(cutting::by::flat, {40, 201, 7}, {}, 2);
  const auto gradients = whole_numbers<double>(6, cut.whole().total(), 9);
  check(gradients, cut, adasum::rules::adasum{},
        adasum::schedules::hierarchical{std::vector<int>{0, 1, 0, 1, 0, 1}, adasum::rules::mean{}},
        places(6, cut, numbering::random));
  // A rule for all nodes at once.
  check(gradients, cut, adasum::rules::geometric_median{},
        adasum::schedules::hierarchical{std::vector<int>{0, 1, 0, 1, 0, 1}, adasum::rules::sum{}},
        places(6, cut, numbering::random));
}

TEST_CASE("lengths on both sides of those at which another schedule is chosen") {
  using cutting::by::flat, cutting::by::last, cutting::by::segments;
  for (const auto& one : {std::pair{100u, flat}, {1000u, segments}, {3000u, last}, {9000u, flat}}) {
    const std::size_t length = one.first;
    CAPTURE(length);
    const cutting cut(one.second, {length, length / 3}, {1}, 2);
    for (const std::size_t replicas : {2u, 4u}) {
      const auto gradients = whole_numbers<double>(replicas, cut.whole().total(), length);
      const auto where = places(replicas, cut, numbering::random);
      check(gradients, cut, adasum::rules::adasum{}, adasum::schedules::automatic{}, where);
      std::vector<int> nodes;
      for (std::size_t r = 0; r < replicas; ++r) nodes.push_back(static_cast<int>(r / 2));
      check(gradients, cut, adasum::rules::adasum{}, adasum::schedules::hierarchical{nodes, adasum::rules::mean{}},
            where);
      using adasum::schedules::shared_memory;
      check(gradients, cut, adasum::rules::adasum{},
            adasum::schedules::hierarchical{nodes, adasum::rules::mean{}, shared_memory{}}, where);
    }
  }
}

TEST_CASE("gradients that cancel, are too long for their squares, or have one element") {
  struct choice {
    std::size_t replicas, shards;
    cutting::by how;
  };
  using cutting::by::flat, cutting::by::last, cutting::by::segments;
  for (const auto& one :
       {choice{2, 2, flat}, {3, 3, segments}, {4, 2, last}, {4, 3, flat}, {4, 3, segments}, {8, 3, flat}}) {
    const cutting cut(one.how, {40, 25, 1, 64, 1, 30}, {1, 4, 5}, one.shards);
    const auto replicas = one.replicas;
    CAPTURE(replicas);
    CAPTURE(one.shards);
    CAPTURE(static_cast<int>(one.how));
    auto gradients = whole_numbers<double>(replicas, cut.whole().total(), 3);
    for (std::size_t r = 0; r < replicas; ++r)
      for (std::size_t k = 0; k < cut.whole().size(); ++k)
        for (auto x = cut.whole().offset(k); x < cut.whole().offset(k + 1); ++x) {
          if (k < 3 && r % 2 == 1) gradients[r][x] = -gradients[r - 1][x];
          if (k > 3) gradients[r][x] *= 0x1p+600;
        }
    const auto where = places(replicas, cut, numbering::random);
    for_each_message_schedule([&](const auto& order, const std::string& name) {
      CAPTURE(name);
      check(gradients, cut, adasum::rules::adasum{}, order, where);
    });
    check(gradients, cut, adasum::rules::geometric_median{}, adasum::schedules::all_to_all{}, where);
    check(gradients, cut, adasum::rules::adacons{}, adasum::schedules::all_to_all{}, where);
  }
}

TEST_CASE("a segment of one number has no direction that rounding could change, though other ranks hold none of it") {
  // Of these, rounding errors that grew with their vectors would be taken for the rest of what cancels.
  const std::vector<float> known{-29, 1, 14, -8, 4, 2, 0, 22, -15, 23, -11, 28};
  const cutting cut(cutting::by::segments, {1, 3}, {}, 2);
  std::vector<std::vector<float>> gradients;
  for (const float value : known) gradients.push_back({value * 0.37f, 1, 2, 3});
  const auto where = places(known.size(), cut, numbering::random);
  check(gradients, cut, adasum::rules::adasum_linear{}, adasum::schedules::all_to_all{}, where);
}

TEST_CASE("Inf in one shard leaves out the replica, in all of its shards") {
  constexpr auto infinity = std::numeric_limits<double>::infinity();
  for (const auto how : every_cut) {
    const cutting cut(how, {40, 25, 1, 64}, {3}, 3);
    auto gradients = whole_numbers<double>(4, cut.whole().total(), 3);
    gradients[2][30] = infinity;
    const auto where = places(4, cut, numbering::random);
    check(gradients, cut, adasum::rules::adasum{}, adasum::schedules::automatic{}, where,
          {.check_agreement = false, .nonfinite = adasum::nonfinite_policy::exclude});
    const auto ranks = on_ranks(12, [&](const adasum::thread_communicator& comm) {
      const auto& mine = where[static_cast<std::size_t>(comm.rank())];
      const auto s = static_cast<std::size_t>(mine.index);
      auto gradient = cut.shard_of(gradients[static_cast<std::size_t>(mine.replica)], s);
      const auto before = gradient;
      try {
        adasum::adasum_allreduce(exec, comm, gradient, mine, cut.segments_of(s),
                                 {.nonfinite = adasum::nonfinite_policy::raise});
      } catch (const adasum::nonfinite_error& raised) {
        return std::string(same_bits(gradient, before) ? "" : "changed; ") + raised.what();
      }
      return std::string("nothing was thrown");
    });
    for (const auto& rank : ranks) {
      REQUIRE_MESSAGE(rank.value, rank.description());
      CHECK(*rank.value == *ranks[0].value);
      CHECK(rank.value->starts_with("adasum: Inf or NaN in the shard of rank"));
    }
  }
}

TEST_CASE("floats: counterparts have the same bits, replicated segments have them everywhere, all are right") {
  std::size_t turn = 0;
  for (const auto how : every_cut)
    for (const auto wire : {adasum::wire_format::same, adasum::wire_format::bfloat16}) {
      const std::size_t replicas = 3 + (turn + turn / 2) % 2;  // each with each way and each format
      ++turn;
      const cutting cut(how, {300, 500, 12, 77}, {2, 3}, 3);
      const auto gradients = random_gradients<float>(replicas, cut.whole().total(), 12);
      const auto where = places(replicas, cut, numbering::random);
      CAPTURE(wire == adasum::wire_format::same);
      const adasum::options choices{.check_agreement = true, .wire = wire};
      for_each_message_schedule([&](const auto& order, const std::string& name) {
        CAPTURE(name);
        const auto whole = reduce_on_threads<float>(gradients, cut.whole(), adasum::rules::adasum{}, order, choices);
        const auto ranks =
            results_of(on_ranks(static_cast<int>(where.size()), [&](const adasum::thread_communicator& comm) {
              const auto& mine = where[static_cast<std::size_t>(comm.rank())];
              const auto s = static_cast<std::size_t>(mine.index);
              auto gradient = cut.shard_of(gradients[static_cast<std::size_t>(mine.replica)], s);
              adasum::adasum_allreduce(exec, comm, gradient, mine, cut.segments_of(s), order, choices);
              return gradient;
            }));
        std::vector<std::vector<float>> by_shard(cut.shards());
        std::vector<float> replicated;
        for (std::size_t r = 0; r < ranks.size(); ++r) {
          auto& same = by_shard[static_cast<std::size_t>(where[r].index)];
          if (same.empty()) same = ranks[r];
          CHECK(same_bits(ranks[r], same));
          const std::vector<float> last(ranks[r].end() - 89, ranks[r].end());
          if (replicated.empty()) replicated = last;
          CHECK(same_bits(last, replicated));
          const auto expected = cut.shard_of(whole.front().gradient, static_cast<std::size_t>(where[r].index));
          const double tolerance = wire == adasum::wire_format::same ? 1e-6 : 0.02;
          for (std::size_t x = 0; x < expected.size(); ++x)
            if (!(std::abs(ranks[r][x] - expected[x]) <= tolerance * (1 + std::abs(expected[x]))))
              FAIL_CHECK("element ", x, " of rank ", r, ": ", ranks[r][x], " in place of ", expected[x]);
        }
      });
    }
}

TEST_CASE("a plan on one rank, and of one replica, measures and changes nothing") {
  std::vector<float> gradient{3, 4};
  const auto found = adasum::adasum_allreduce(exec, adasum::self_communicator{}, gradient, adasum::shard{});
  CHECK(gradient == std::vector<float>{3, 4});
  CHECK(found.norm(0, 0) == 5);
}

}  // namespace test_of_shards
