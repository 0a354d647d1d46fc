// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>
#include <limits>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <adasum/adasum.hpp>

#include "support/allocations.hpp"
#include "support/disagreements.hpp"
#include "support/random_gradients.hpp"
#include "support/thread_reduction.hpp"

namespace test_of_allreduce_again {

/// Single calls that are made again, for which the communicator keeps a plan.

using namespace adasum::test;

namespace {

const adasum::serial_space space;
const adasum::segments segs{40, 0, 7, 2153};

/// Of one rank: the results of one call after the other, and by what they came.
struct repeated {
  std::vector<std::vector<float>> results;
  std::vector<std::string> schedules;
};

template <class Schedule>
repeated call_repeatedly(const adasum::thread_communicator& comm, int times, const std::vector<float>& gradient,
                         const Schedule& order, const adasum::options& choices) {
  repeated found;
  for (int i = 0; i < times; ++i) {
    auto mine = gradient;
    found.schedules.emplace_back(adasum::adasum_allreduce(space, comm, mine, segs, order, choices).schedule());
    found.results.push_back(mine);
  }
  return found;
}

std::vector<std::vector<float>> gradients_of(int size) {
  return random_gradients<float>(static_cast<std::size_t>(size), segs.total(), 7);
}

template <class Check>
void for_both(const Check& check) {
  for (const auto& choices : {checked, unchecked}) {
    CAPTURE(choices.check_agreement);
    check(choices);
  }
}

/// Three ranks make a call often enough to have its plan. Then differs(comm, gradient) takes the place of that call on one
/// of them: all must be told, none may wait, no gradient may change, and the same call must work again.
template <class Differing, class First>
void check_one_that_differs(const adasum::options& choices, const Differing& differs, const First& first) {
  const auto gradients = gradients_of(3);
  const auto ranks = results_of(on_ranks(3, [&](const adasum::thread_communicator& comm) {
    const auto& gradient = gradients[static_cast<std::size_t>(comm.rank())];
    first(comm, gradient);
    std::vector<ending> found;
    for (int i = 0; i < 7; ++i)
      found.push_back(end_of(gradient, [&](auto& mine) {
        if (i == 3 && comm.rank() == 1)
          differs(comm, mine);
        else
          adasum::adasum_allreduce(space, comm, mine, segs, choices);
      }));
    return found;
  }));
  for (std::size_t r = 0; r < ranks.size(); ++r)
    for (std::size_t i = 0; i < ranks[r].size(); ++i) {
      const auto& end = ranks[r][i];
      CAPTURE(r);
      CAPTURE(i);
      CAPTURE(end.message);
      CHECK((end.how == way::returned) == (i != 3));
      if (i != 3) continue;
      CHECK(end.unchanged);
      if (choices.check_agreement) CHECK(end.how == way::agreement_error);
    }
}
template <class Differing>
void check_one_that_differs(const adasum::options& choices, const Differing& differs) {
  check_one_that_differs(choices, differs, [](const auto&, const auto&) {});
}

}  // namespace

TEST_CASE("every call gives the same bits, by every schedule") {
  const auto check = [](int size, const auto& order, const std::string& name) {
    for (const bool checks : {false, true}) {
      CAPTURE(name);
      CAPTURE(size);
      const auto gradients = gradients_of(size);
      const auto ranks = results_of(on_ranks(size, [&](const adasum::thread_communicator& comm) {
        return call_repeatedly(comm, 4, gradients[static_cast<std::size_t>(comm.rank())], order,
                               checks ? checked : unchecked);
      }));
      for (const auto& rank : ranks)
        for (const auto& result : rank.results) CHECK(same_bits(result, ranks[0].results[0]));
    }
  };
  for (const int size : {2, 3, 5}) {
    for_each_schedule([&](const auto& order, const std::string& name) { check(size, order, name); });
    check(size, adasum::schedules::automatic{}, "automatic, in place");
  }
}

TEST_CASE("the default schedule works in shared memory, unless the plan is made for one call alone") {
  const auto gradients = gradients_of(3);
  for (const bool keeps : {true, false}) {
    const auto ranks = results_of(on_ranks(3, [&](const adasum::thread_communicator& comm) {
      return call_repeatedly(comm, 3, gradients[static_cast<std::size_t>(comm.rank())], adasum::schedules::automatic{},
                             {.check_agreement = false, .keep_plan = keeps});
    }));
    for (const auto& rank : ranks) {
      for (const auto& schedule : rank.schedules) CHECK((schedule == adasum::schedules::shared_memory::name) == keeps);
    }
  }
}

TEST_CASE("from the second call on, only the report is allocated") {
  const auto gradients = gradients_of(4);
  const auto ranks = results_of(on_ranks(4, [&](const adasum::thread_communicator& comm) {
    auto gradient = gradients[static_cast<std::size_t>(comm.rank())];
    std::vector<std::size_t> counts;
    counts.reserve(4);
    for (int i = 0; i < 4; ++i) {
      const auto before = allocations();
      const auto found = adasum::adasum_allreduce(space, comm, gradient, segs, unchecked);
      const auto of_call = allocations() - before;
      const auto copy = found;
      counts.push_back(of_call - (allocations() - before - of_call));
    }
    return counts;
  }));
  for (const auto& counts : ranks) {
    CHECK(counts[0] > 0);
    CHECK(counts[1] == 0);
    CHECK(counts[2] == 0);
    CHECK(counts[3] == 0);
  }
}

TEST_CASE("calls with other arguments have plans of their own") {
  const auto gradients = gradients_of(3);
  const auto one_after_the_other = [&](bool keeps) {
    return results_of(on_ranks(3, [&](const adasum::thread_communicator& comm) {
      const auto& gradient = gradients[static_cast<std::size_t>(comm.rank())];
      std::vector<std::vector<float>> results;
      const auto call = [&](const auto&... others) {
        auto mine = gradient;
        adasum::combine_allreduce(space, comm, mine, others...);
        results.push_back(mine);
      };
      adasum::options plain = unchecked, rounded = unchecked, quiet = unchecked;
      plain.keep_plan = rounded.keep_plan = quiet.keep_plan = keeps;
      rounded.wire = adasum::wire_format::bfloat16;
      quiet.measure = adasum::measuring::when_needed;
      for (int i = 0; i < 3; ++i) {
        call(segs, plain);
        call(plain);
        call(segs, rounded, adasum::schedules::recursive_halving{});
        call(segs, plain, adasum::schedules::recursive_halving{.radix = 4});
        call(segs, quiet, adasum::rules::sum{});
        call(segs, plain, adasum::rules::mean{});
        call(segs, plain, adasum::rules::adacons{});
      }
      return results;
    }));
  };
  const auto kept = one_after_the_other(true), fresh = one_after_the_other(false);
  for (std::size_t r = 0; r < kept.size(); ++r)
    for (std::size_t i = 0; i < kept[r].size(); ++i) {
      CAPTURE(i);
      CHECK(same_bits(kept[r][i], fresh[r][i]));
    }
}

TEST_CASE("of more different calls than are kept, all are right") {
  constexpr auto count = adasum::kept_plans::most + 5;
  const auto ranks = results_of(on_ranks(2, [&](const adasum::thread_communicator& comm) {
    std::size_t wrong = 0;
    for (int turn = 0; turn < 3; ++turn)
      for (std::size_t length = 1; length <= count; ++length) {
        std::vector<float> gradient(length, comm.rank() == 0 ? 1.0f : 3.0f);
        adasum::adasum_allreduce(space, comm, gradient, unchecked);
        for (const float x : gradient) wrong += x != 2;  // the mean of what is parallel
      }
    return wrong;
  }));
  for (const auto wrong : ranks) CHECK(wrong == 0);
}

TEST_CASE("a rank that calls with other segments, where the others have a plan") {
  for_both([](const adasum::options& choices) {
    check_one_that_differs(
        choices, [&](const auto& comm, auto& gradient) { adasum::adasum_allreduce(space, comm, gradient, choices); });
  });
}

TEST_CASE("a rank that calls with segments that do not add up, where the others have a plan") {
  for_both([](const adasum::options& choices) {
    check_one_that_differs(choices, [&](const auto& comm, auto& gradient) {
      adasum::adasum_allreduce(space, comm, gradient, adasum::segments{40, 7}, choices);
    });
  });
}

TEST_CASE("a rank that makes a call that keeps no plan, or a plan, where the others have one") {
  for_both([](const adasum::options& choices) {
    check_one_that_differs(choices, [&](const auto& comm, auto& gradient) {
      adasum::options keeps_none = choices;
      keeps_none.keep_plan = false;
      adasum::adasum_allreduce(space, comm, gradient, segs, keeps_none);
    });
    check_one_that_differs(choices, [&](const auto& comm, auto& gradient) {
      adasum::combine_allreduce(space, comm, gradient, segs, adasum::rules::adacons{}, choices);
    });
    check_one_that_differs(choices,
                           [&](const auto& comm, auto&) { adasum::plan_allreduce<float>(space, comm, segs, choices); });
  });
}

TEST_CASE("what differs is said where plans are kept, too") {
  const auto gradients = gradients_of(2);
  const auto ranks = on_ranks(2, [&](const adasum::thread_communicator& comm) {
    for (int i = 0; i < 3; ++i) {
      auto mine = gradients[static_cast<std::size_t>(comm.rank())];
      const auto second = i == 2 && comm.rank() == 1 ? std::size_t{1} : std::size_t{2};
      adasum::adasum_allreduce(space, comm, mine, adasum::segments{second, mine.size() - second},
                               {.check_agreement = true});
    }
    return 0;
  });
  for (const auto& rank : ranks)
    CHECK(rank.message_of<adasum::agreement_error>().value_or("").find("segment 0 ends at element 2 on rank 0") !=
          std::string::npos);
}

TEST_CASE("keep_plan in braces") {
  const auto ranks = results_of(on_ranks(2, [](const adasum::thread_communicator& comm) {
    std::vector<float> gradient(3, 1);
    return std::string(adasum::adasum_allreduce(space, comm, gradient, {.keep_plan = false}).schedule());
  }));
  CHECK(ranks[0] == "recursive_doubling");
}

TEST_CASE("after a call that is refused for what is not finite, the plan is still there") {
  const adasum::options raises{.check_agreement = false, .nonfinite = adasum::nonfinite_policy::raise};
  const auto gradients = gradients_of(3);
  const auto ranks = results_of(on_ranks(3, [&](const adasum::thread_communicator& comm) {
    const auto& gradient = gradients[static_cast<std::size_t>(comm.rank())];
    std::vector<std::size_t> counts;
    counts.reserve(5);
    for (int i = 0; i < 5; ++i) {
      auto mine = gradient;
      if (i == 3 && comm.rank() == 1) mine[1] = std::numeric_limits<float>::quiet_NaN();
      const auto before = allocations();
      if (i == 3)
        CHECK_THROWS_AS(adasum::adasum_allreduce(space, comm, mine, segs, raises), adasum::nonfinite_error);
      else
        adasum::adasum_allreduce(space, comm, mine, segs, raises);
      counts.push_back(allocations() - before);
    }
    return counts;
  }));
  for (const auto& counts : ranks) {
    CHECK(counts[0] > counts[2]);
    CHECK(counts[4] == counts[2]);
  }
}

TEST_CASE("a rank that has forgotten its plans, where the others have one") {
  for_both([](const adasum::options& choices) {
    check_one_that_differs(choices, [&](const auto& comm, auto& gradient) {
      comm.state().plans().clear();
      adasum::adasum_allreduce(space, comm, gradient, segs, choices);
    });
  });
}

TEST_CASE("a rank that makes a call of which all have a plan, where the others make another one") {
  for_both([](const adasum::options& choices) {
    check_one_that_differs(
        choices, [&](const auto& comm, auto& gradient) { adasum::adasum_allreduce(space, comm, gradient, choices); },
        [&](const auto& comm, auto gradient) {
          for (int i = 0; i < 3; ++i) adasum::adasum_allreduce(space, comm, gradient, choices);
        });
  });
}

TEST_CASE("a rank that runs out of memory in the first call or a later one leaves no other waiting") {
  constexpr int size = 3;
  const auto gradients = gradients_of(size);
  for (const int in_call : {0, 2}) {
    bool ran_out = true;
    for (std::size_t n = first_to_fail(); ran_out; n += allocations_apart) {
      case_under_test() = "call " + std::to_string(in_call) + ", where allocation " + std::to_string(n) + " fails";
      CAPTURE(case_under_test());
      const auto ranks = on_ranks(size, [&](const adasum::thread_communicator& comm) {
        const auto& gradient = gradients[static_cast<std::size_t>(comm.rank())];
        bool failed = false;
        std::vector<std::vector<float>> right;
        for (int i = 0; i < 6; ++i) {
          auto mine = gradient;
          std::optional<failing_allocations> failures;
          if (comm.rank() == 1 && i == in_call) failures.emplace(n);
          try {
            adasum::adasum_allreduce(space, comm, mine, segs, unchecked);
            failed |= failures && failures->any();
            failures.reset();
            right.push_back(mine);
          } catch (...) {
            failed |= failures && failures->any();
            failures.reset();
            CHECK(i == in_call);
          }
        }
        return std::pair(failed, right);
      });
      ran_out = false;
      for (const auto& rank : ranks) {
        REQUIRE_MESSAGE(rank.value, rank.description());
        ran_out |= rank.value->first;
        CHECK(rank.value->second.size() >= 5);
        for (const auto& result : rank.value->second) CHECK(same_bits(result, ranks[0].value->second.back()));
      }
    }
  }
}

}  // namespace test_of_allreduce_again
