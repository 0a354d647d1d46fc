// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <adasum/adasum.hpp>
#include <adasum/detail/engine/transport/shared_barriers.hpp>
#include <adasum/detail/engine/transport/shared_memory_layout.hpp>

#include "support/disagreements.hpp"
#include "support/random_gradients.hpp"
#include "support/sizes.hpp"
#include "support/thread_reduction.hpp"

namespace test_of_detail_engine_withdrawal {

/// Without agreement checks: a rank that fails tells the others, none of them hangs, and the communicator and the plans
/// work again afterwards. (A hang ends the program: see on_each.)

using namespace adasum::test;

namespace {

const auto rank_counts = few_or_all({3, 4, 7}, {2, 3, 4, 5, 6, 7, 8, 9, 16});

const adasum::segments segs{17, 0, 30, 4};

const std::vector<float>& gradient_of(int rank) {
  static const auto all = random_gradients<float>(16, segs.total(), 29);
  return all[static_cast<std::size_t>(rank)];
}

/// What so many ranks must get. To find it out takes longer than to reduce.
const expectation& expected_of(int size) {
  static std::map<int, expectation> found;
  if (const auto known = found.find(size); known != found.end()) return known->second;
  std::vector<std::vector<float>> gradients;
  for (int rank = 0; rank < size; ++rank) gradients.push_back(gradient_of(rank));
  return found.emplace(size, expectation::of<float>(adasum::rules::adasum{}, gradients, segs)).first->second;
}

/// One call that fails on one rank, and then a good one.
struct relapse {
  ending first;
  std::vector<float> second;
};

/// Makes a plan on each rank, runs `fail(plan, comm)` and then reduces. The second result must be right everywhere.
template <class Schedule, class Fail>
std::vector<ending> endings_before_a_good_run(int size, const Schedule& order, const Fail& fail) {
  const auto ranks = on_ranks(size, [&](const adasum::thread_communicator& comm) {
    auto plan =
        adasum::plan_allreduce<float>(adasum::serial_space{}, comm, segs, adasum::rules::adasum{}, order, unchecked);
    relapse both;
    both.first = fail(plan, comm);
    both.second = gradient_of(comm.rank());
    plan(both.second);
    return both;
  });
  const auto& expected = expected_of(size);
  std::vector<ending> endings;
  for (const auto& rank : ranks) {
    REQUIRE_MESSAGE(rank.value, rank.description());
    CHECK(worst_error_over_bound(rank.value->second, expected.exact.values, expected.bounds, segs) <= 1);
    endings.push_back(rank.value->first);
  }
  return endings;
}

/// visit(schedule, size, culprit)
template <class Visitor>
void for_each_culprit(Visitor&& visit) {
  for_each_schedule([&](const auto& order, const std::string& name) {
    for (const int size : rank_counts)
      for (int culprit = 0; culprit < size; ++culprit) {
        CAPTURE(name);
        CAPTURE(size);
        CAPTURE(culprit);
        visit(order, size, culprit);
      }
  });
}

void check_one_bad_input(const std::vector<ending>& endings, int culprit) {
  for (std::size_t r = 0; r < endings.size(); ++r) {
    const bool bad = static_cast<int>(r) == culprit;
    CHECK_MESSAGE(endings[r].how == (bad ? way::bad_input : way::communication_error), "rank ", r, " ",
                  to_string(endings[r].how), ": ", endings[r].message);
    if (bad) CHECK(endings[r].unchanged);
  }
}

}  // namespace

TEST_CASE("a gradient of another length") {
  for_each_culprit([](const auto& order, int size, int culprit) {
    const auto endings = endings_before_a_good_run(size, order, [&](auto& plan, const auto& comm) {
      auto gradient = gradient_of(comm.rank());
      if (comm.rank() == culprit) gradient.push_back(0);
      return end_of(gradient, [&](auto& g) { plan(g); });
    });
    check_one_bad_input(endings, culprit);
  });
}

TEST_CASE("weights of another length") {
  for_each_culprit([](const auto& order, int size, int culprit) {
    const auto endings = endings_before_a_good_run(size, order, [&](auto& plan, const auto& comm) {
      auto weights = gradient_of(comm.rank());
      if (comm.rank() == culprit) weights.push_back(0);
      return end_of(weights, [&](auto& w) { adasum::delta_allreduce(plan, std::vector<float>(segs.total()), w); });
    });
    check_one_bad_input(endings, culprit);
  });
}

TEST_CASE("segments that do not add up") {
  for_each_culprit([](const auto& order, int size, int culprit) {
    const auto endings = endings_before_a_good_run(size, order, [&](auto&, const auto& comm) {
      return end_of(gradient_of(comm.rank()), [&](auto& g) {
        const auto mine = comm.rank() == culprit ? adasum::segments{17, 30} : segs;
        adasum::adasum_allreduce(adasum::serial_space{}, comm, g, mine, order, unchecked);
      });
    });
    check_one_bad_input(endings, culprit);
  });
}

namespace {

/// What one rank got from a reduction in which one of them failed, and from the next one.
template <adasum::scalar T>
struct failed_once {
  ending end;
  std::vector<T> midway, afterwards;
};

/// Lets one rank fail at its first, second, … call of a rule or kernel, until it gets through. `reduce(until, comm,
/// gradient)` is what every rank does, with a countdown that ends on the culprit alone.
template <adasum::scalar T, class Reduce>
void check_failures_midway(const std::vector<std::vector<T>>& gradients, const Reduce& reduce) {
  const int size = static_cast<int>(gradients.size());
  for (int culprit = 0; culprit < size; ++culprit) {
    bool failed = true;
    for (int calls = 0; std::exchange(failed, false); ++calls) {
      CAPTURE(culprit);
      CAPTURE(calls);
      const auto ranks = on_ranks(size, [&](const adasum::thread_communicator& comm) {
        const auto& mine = gradients[static_cast<std::size_t>(comm.rank())];
        auto midway = mine, afterwards = mine;
        const auto end = end_of(midway, [&](auto& g) {
          reduce(countdown(comm.rank() == culprit ? calls : -1), comm, g);
          midway = g;
        });
        reduce(countdown(-1), comm, afterwards);
        return failed_once<T>{end, midway, afterwards};
      });
      for (std::size_t r = 0; r < ranks.size(); ++r) {
        REQUIRE_MESSAGE(ranks[r].value, "rank ", r, " ", ranks[r].description());
        const auto& run = *ranks[r].value;
        const auto& end = run.end;
        CHECK(same_bits(run.afterwards, ranks[0].value->afterwards));
        if (end.how == way::returned)
          CHECK(same_bits(run.midway, run.afterwards));  // it needed nothing any more from the one that failed
        else if (static_cast<int>(r) == culprit)
          CHECK(end.how == way::other);
        else
          CHECK_MESSAGE(end.how == way::communication_error, to_string(end.how), ": ", end.message);
      }
      failed = ranks[static_cast<std::size_t>(culprit)].value->end.how != way::returned;
    }
  }
}

/// By every schedule, with a rule and with a space that throws.
template <adasum::scalar T>
void check_failures_midway(const std::vector<std::vector<T>>& gradients) {
  for_each_schedule([&](const auto& order, const std::string& name) {
    CAPTURE(name);
    CAPTURE(gradients.size());
    check_failures_midway(gradients, [&](const countdown& until, const auto& comm, auto& gradient) {
      adasum::combine_allreduce(adasum::serial_space{}, comm, gradient, failing_rule{until}, segs, order, unchecked);
    });
    check_failures_midway(gradients, [&](const countdown& until, const auto& comm, auto& gradient) {
      adasum::adasum_allreduce(failing_space{until, {}}, comm, gradient, segs, order, unchecked);
    });
  });
}

}  // namespace

TEST_CASE("a rule or a kernel that throws midway") {
  for (const auto size : few_or_all<std::size_t>({2, 3, 5}, {2, 3, 4, 5, 8}))
    check_failures_midway(random_gradients<float>(size, segs.total(), 31));
}

TEST_CASE("a rule or a kernel that throws while a segment is combined vector by vector") {
  for (const auto size : few_or_all<std::size_t>({4}, {2, 4, 5})) {
    auto gradients = random_gradients<double>(size, segs.total(), 37);
    for (auto& gradient : gradients)
      for (auto x = segs.offset(2); x < segs.offset(3); ++x) gradient[x] *= 1e170;
    check_failures_midway(gradients);
  }
}

TEST_CASE("a gradient so short that automatic would choose another schedule for it") {
  for (const int size : {2, 3, 4, 5})
    for (int culprit = 0; culprit < size; ++culprit) {
      CAPTURE(size);
      CAPTURE(culprit);
      const auto ranks = on_ranks(size, [&](const auto& comm) {
        return end_of(counted(comm.rank() == culprit ? 10 : 6000), [&](auto& g) {
          adasum::adasum_allreduce(adasum::serial_space{}, comm, g, adasum::segments{6000},
                                   adasum::schedules::automatic{}, unchecked);
        });
      });
      std::vector<ending> endings;
      for (const auto& rank : ranks) endings.push_back(*rank.value);
      check_one_bad_input(endings, culprit);
    }
}

namespace {

/// Takes its time before it measures.
struct slow_space : adasum::serial_space {
  std::chrono::milliseconds delay{0};
  std::atomic<bool>* has_measured = nullptr;
  friend bool operator==(const slow_space&, const slow_space&) = default;

  template <adasum::scalar T>
  void measure(const adasum::slice& window, std::span<const T* const> vectors, double* gram) const {
    std::this_thread::sleep_for(delay);
    adasum::serial_space::measure<T>(window, vectors, gram);
    if (has_measured) *has_measured = true;
  }
};

}  // namespace

TEST_CASE("in shared memory, a rank that does not come in time is an error on every rank") {
  using namespace std::chrono_literals;
  // Too long to be placed for the others: nobody would wait for the late one then, once it has come.
  const adasum::segments longer{17, 0, 30, 5000};
  std::atomic<bool> late_one_has_measured = false;
  const auto ranks = on_ranks(3, [&](const adasum::thread_communicator& comm) {
    slow_space space;
    if (comm.rank() == 1) {
      space.delay = 5s;
      space.has_measured = &late_one_has_measured;
    }
    auto choices = unchecked;
    choices.timeout = std::chrono::seconds(2);
    auto mine = counted(longer.total());
    auto end = end_of(std::vector<float>{}, [&](auto&) {
      adasum::adasum_allreduce(space, comm, mine, longer, adasum::schedules::shared_memory{}, choices);
    });
    CHECK(late_one_has_measured);  // it reads the others' gradients until then: now they may be freed
    return end;
  });
  std::string messages;
  for (const auto& rank : ranks) {
    REQUIRE_MESSAGE(rank.value, rank.description());
    CHECK(rank.value->how == way::communication_error);
    messages += rank.value->message;
  }
  CHECK(messages.find("rank 1 did not come within 2") != std::string::npos);
}

TEST_CASE("in shared memory: a rank that fails twice before the others come once has failed for each of them") {
  for (const auto& cut : {segs, adasum::segments{5000, 100}})
    for (int culprit = 0; culprit < 3; ++culprit) {
      CAPTURE(cut.total());
      CAPTURE(culprit);
      std::atomic<bool> has_failed_twice = false;
      const auto ranks = on_ranks(3, [&](const adasum::thread_communicator& comm) {
        auto plan =
            adasum::plan_allreduce<float>(adasum::serial_space{}, comm, cut, adasum::schedules::automatic{}, unchecked);
        std::vector<ending> endings;
        const auto run = [&](std::size_t length) {
          endings.push_back(end_of(counted(length), [&](auto& g) { plan(g); }));
        };
        if (comm.rank() == culprit) {
          run(3);
          run(3);
          has_failed_twice = true;
        } else {
          while (!has_failed_twice) std::this_thread::yield();
          run(cut.total());
          run(cut.total());
        }
        run(cut.total());
        return endings;
      });
      for (int rank = 0; rank < 3; ++rank) {
        const auto& one = ranks[static_cast<std::size_t>(rank)];
        REQUIRE_MESSAGE(one.value, one.description());
        const auto expected = rank == culprit ? way::bad_input : way::communication_error;
        CHECK((*one.value)[0].how == expected);
        CHECK((*one.value)[1].how == expected);
        CHECK((*one.value)[2].how == way::returned);
      }
    }
}

TEST_CASE("unchecked: plans that differ are an error on all ranks, before memory is shared") {
  using adasum::segments;
  const auto check = [](auto&& make) {
    const auto ranks = on_ranks(3, [&](const adasum::thread_communicator& comm) {
      return end_of(std::vector<float>{}, [&](auto&) { make(comm); });
    });
    for (const auto& rank : ranks) {
      REQUIRE_MESSAGE(rank.value, rank.description());
      CHECK_MESSAGE(rank.value->how == way::communication_error, to_string(rank.value->how), rank.value->message);
      CHECK(rank.value->message.find("set the option check_agreement to learn") != std::string::npos);
    }
  };
  const auto make = [](auto zero, const auto& comm, const segments& cut) {
    adasum::plan_allreduce<decltype(zero)>(adasum::serial_space{}, comm, cut, adasum::schedules::automatic{},
                                           unchecked);
  };
  for (const auto& both :
       {std::pair(segments{2000, 3000}, segments{1000, 4000}), std::pair(segments{5000}, segments{1000, 4000}),
        std::pair(segments{5000}, segments{4990}), std::pair(segments{5000}, segments{50})})
    for (int culprit = 0; culprit < 3; ++culprit) {
      const auto &cut = both.first, &other = both.second;
      CAPTURE(other.total());
      CAPTURE(culprit);
      check([&](const auto& comm) { make(0.0f, comm, comm.rank() == culprit ? other : cut); });
    }
  check(
      [&](const auto& comm) { comm.rank() == 2 ? make(0.0, comm, segments{5000}) : make(0.0f, comm, segments{5000}); });
}

namespace {

using shared_barriers = adasum::detail::shared_barriers<adasum::thread_communicator::memory>;
using shared_memory_layout = adasum::detail::shared_memory_layout<adasum::thread_communicator::memory>;

adasum::detail::barrier_pattern all_three(int rank) {
  const std::size_t ranks[] = {0, 1, 2};
  return {ranks, static_cast<std::size_t>(rank), 8};
}

/// How a rank meets the others in memory that rank 0 has made.
template <class Meet>
std::vector<ending> endings_in_shared_memory(const Meet& meet) {
  std::atomic<int> shared = 0, ended = 0;
  const auto ranks = on_ranks(3, [&](const adasum::thread_communicator& comm) {
    while (shared < comm.rank()) std::this_thread::yield();
    auto memory = comm.share(shared_memory_layout::bytes_for({.sums = comm.rank() == 0 ? 8u : 800u}, 3));
    ++shared;
    const auto end = end_of(std::vector<float>{}, [&](auto&) { meet(std::move(memory), comm.rank()); });
    for (++ended; ended < 3;) std::this_thread::yield();  // who waits must not need that another leaves
    return end;
  });
  std::vector<ending> endings;
  for (const auto& rank : ranks) endings.push_back(*rank.value);
  return endings;
}

}  // namespace

TEST_CASE("in shared memory, what other plans have made is not written to") {
  const auto differ = endings_in_shared_memory([](auto memory, int rank) {
    shared_barriers access(std::move(memory), rank, {.sums = 8}, rank == 2 ? 7 : 5, std::chrono::seconds(30));
    const auto all = all_three(rank);
    access.begin_run();
    access.arrive(all);
    access.await_all(adasum::detail::time_limit::always);
  });
  for (const auto& end : differ)
    CHECK_MESSAGE(end.message.find("made a different plan") != std::string::npos, end.message);
  const auto small = endings_in_shared_memory([](auto memory, int rank) {
    shared_barriers access(std::move(memory), rank, {.sums = rank == 0 ? 8u : 800u}, 5, std::chrono::seconds(30));
    const auto all = all_three(rank);
    access.begin_run();
    if (rank > 0) access.contribute(std::vector<double>(800), all);
  });
  CHECK(small[0].how == way::returned);
  for (const std::size_t r : {1u, 2u})
    CHECK_MESSAGE(small[r].message.find("with less shared memory") != std::string::npos, small[r].message);
}

}  // namespace test_of_detail_engine_withdrawal
