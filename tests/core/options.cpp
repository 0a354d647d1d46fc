// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <adasum/adasum.hpp>

#include "support/bits.hpp"
#include "support/random_gradients.hpp"
#include "support/thread_reduction.hpp"

namespace test_of_core_options {

/// options::nonfinite and options::wire, by every schedule.

using namespace adasum::test;

namespace {

const adasum::segments segs{9, 0, 70, 21};

adasum::options with(adasum::nonfinite_policy policy, bool checked = true) {
  adasum::options choices;
  choices.check_agreement = checked;
  choices.nonfinite = policy;
  return choices;
}

/// Gradients of which some ranks' hold Inf or NaN.
template <class T>
std::vector<std::vector<T>> spoiled(int size, const std::vector<int>& ranks) {
  auto gradients = random_gradients<T>(static_cast<std::size_t>(size), segs.total(), 41);
  for (const int r : ranks)
    gradients[static_cast<std::size_t>(r)][10 + static_cast<std::size_t>(r)] =
        r % 2 == 0 ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::quiet_NaN();
  return gradients;
}

}  // namespace

TEST_CASE_TEMPLATE("exclude: as if those ranks had not taken part", T, double, float) {
  for (const int size : {2, 3, 4, 5, 8})
    for (const auto& bad : {std::vector{0}, {size - 1}, {0, size / 2}}) {
      const auto gradients = spoiled<T>(size, bad);
      auto zeroed = gradients;
      std::vector<std::vector<T>> others;
      for (int r = 0; r < size; ++r) {
        if (std::ranges::find(bad, r) != bad.end())
          std::ranges::fill(zeroed[static_cast<std::size_t>(r)], T{0});
        else
          others.push_back(gradients[static_cast<std::size_t>(r)]);
      }
      CAPTURE(size);
      const auto adasum_of = expectation::of<T>(adasum::rules::adasum{}, zeroed, segs);  // zero is neutral
      for_each_schedule([&](const auto& order, const std::string& name) {
        CAPTURE(name);
        const auto ranks = reduce_on_threads<T>(gradients, segs, adasum::rules::adasum{}, order,
                                                with(adasum::nonfinite_policy::exclude));
        check_same_on_all_ranks(ranks);
        const auto& first = ranks.front();
        CHECK(worst_error_over_bound(first.gradient, adasum_of.exact.values, adasum_of.bounds, segs) <= 1);
        auto told = first.found.excluded();
        std::ranges::sort(told);
        auto expected = bad;
        expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
        CHECK(told == expected);
        for (const int r : bad) {
          CHECK(first.found.weight(static_cast<std::size_t>(r), 2) == 0);
          CHECK_FALSE(std::isfinite(first.found.norm(static_cast<std::size_t>(r), 2)));
        }
        CHECK(std::isnan(first.found.orthogonality()) == first.found.all_excluded());

        if (others.empty()) return;
        const auto means = reduce_on_threads<T>(gradients, segs, adasum::rules::mean{}, order,
                                                with(adasum::nonfinite_policy::exclude));
        check_same_on_all_ranks(means);
        const auto mean_of = expectation::of<T>(adasum::rules::mean{}, others, segs);
        // Another order of the same terms: both are within the bound of the exact mean.
        CHECK(worst_error_over_bound(means.front().gradient, mean_of.exact.values, mean_of.bounds, segs) <= 4);
      });
    }
}

TEST_CASE("exclude: with no rank left the result is zero") {
  const auto gradients = spoiled<float>(3, {0, 1, 2});
  for_each_schedule([&](const auto& order, const std::string& name) {
    CAPTURE(name);
    for (const auto& rank : reduce_on_threads<float>(gradients, segs, adasum::rules::adasum{}, order,
                                                     with(adasum::nonfinite_policy::exclude)))
      CHECK(rank.gradient == std::vector<float>(segs.total(), 0.0f));
  });
}

TEST_CASE("raise: the same exception on every rank, and no gradient has changed") {
  for (const int size : {1, 2, 4, 5})
    for_each_schedule([&](const auto& order, const std::string& name) {
      CAPTURE(name);
      const auto gradients = spoiled<double>(size, {size / 2});
      const auto ranks = on_ranks(size, [&](const adasum::thread_communicator& comm) {
        auto gradient = gradients[static_cast<std::size_t>(comm.rank())];
        std::string message;
        try {
          adasum::adasum_allreduce(adasum::serial_space{}, comm, gradient, segs, order,
                                   with(adasum::nonfinite_policy::raise, false));
        } catch (const adasum::nonfinite_error& error) {
          message = error.what();
        }
        CHECK(same_bits(gradient, gradients[static_cast<std::size_t>(comm.rank())]));
        return message;
      });
      const auto expected = "adasum: Inf or NaN in the gradient of rank " + std::to_string(size / 2) + " (segment 2)";
      for (const auto& rank : ranks) {
        REQUIRE(rank.value);
        CHECK(*rank.value == expected);
      }
      // All finite: nothing is raised, and the result is the usual one.
      const auto fine = random_gradients<double>(static_cast<std::size_t>(size), segs.total(), 43);
      const auto raised =
          reduce_on_threads<double>(fine, segs, adasum::rules::adasum{}, order, with(adasum::nonfinite_policy::raise));
      const auto usual = reduce_on_threads<double>(fine, segs, adasum::rules::adasum{}, order);
      CHECK(same_bits(raised.front().gradient, usual.front().gradient));
    });
}

TEST_CASE("finite elements whose squares overflow are finite") {
  auto gradients = random_gradients<double>(2, segs.total(), 47);
  for (double& x : gradients[0]) x *= 1e200;
  const auto ranks = reduce_on_threads<double>(gradients, segs, adasum::rules::adasum{}, adasum::schedules::automatic{},
                                               with(adasum::nonfinite_policy::exclude));
  CHECK(ranks.front().found.excluded().empty());
}

// ── 16 bits on the wire ──

TEST_CASE("16-bit messages: identical on all ranks, and no further off than their rounding") {
  for (const auto format : {adasum::wire_format::bfloat16, adasum::wire_format::binary16})
    for (const int size : {1, 2, 3, 4, 5, 8}) {
      const double unit = format == adasum::wire_format::bfloat16 ? 0x1p-8 : 0x1p-11;
      CAPTURE(unit);
      CAPTURE(size);
      const auto gradients = random_gradients<float>(static_cast<std::size_t>(size), segs.total(), 53);
      std::vector<float> exact(segs.total());
      adasum::adasum_tree(adasum::serial_space{}, gradients, exact, segs);
      double largest = 0;
      for (std::size_t x = 0; x < segs.total(); ++x) {
        double mass = 0;
        for (const auto& gradient : gradients) mass += std::abs(static_cast<double>(gradient[x]));
        largest = std::max(largest, mass);
      }
      adasum::options choices;
      choices.wire = format;
      for_each_schedule([&](const auto& order, const std::string& name) {
        CAPTURE(name);
        const auto ranks = reduce_on_threads<float>(gradients, segs, adasum::rules::adasum{}, order, choices);
        check_same_on_all_ranks(ranks);
        // A vector is rounded when it is sent to be combined, at most log₂P + 1 times, and when the result is gathered;
        // a rounding of the gradients changes their weights by no more than itself.
        const double roundings = 2 * (std::log2(size) + 2);
        double worst = 0;
        for (std::size_t x = 0; x < segs.total(); ++x)
          worst = std::max(worst, std::abs(static_cast<double>(ranks.front().gradient[x] - exact[x])));
        CHECK(worst <= roundings * unit * largest);
        if (!name.starts_with("shared_memory") && size > 1) {
          CHECK(worst > 0);  // something was rounded
          CHECK(ranks.front().found.wire() == format);
          const auto full = reduce_on_threads<float>(gradients, segs, adasum::rules::adasum{}, order);
          CHECK(ranks.front().found.bytes_sent() < full.front().found.bytes_sent());
          CHECK(full.front().found.wire() == adasum::wire_format::same);
        }
        if (name == "shared_memory" && size > 1) CHECK(ranks.front().found.wire() == adasum::wire_format::same);
      });
    }
}

TEST_CASE("16-bit messages are for floats") {
  adasum::options choices;
  choices.wire = adasum::wire_format::bfloat16;
  CHECK_THROWS_WITH_AS(adasum::plan_allreduce<double>(adasum::serial_space{}, adasum::self_communicator{}, segs,
                                                      adasum::rules::adasum{}, adasum::schedules::automatic{}, choices),
                       doctest::Contains("options::wire needs float gradients and an execution space that rounds "
                                         "them; here the elements are double and the space is "),
                       adasum::bad_input);
}

TEST_CASE("16-bit messages of gradients that nearly cancel: no further off than their rounding") {
  for (const auto format : {adasum::wire_format::bfloat16, adasum::wire_format::binary16})
    for (const int size : {2, 3, 4, 5})
      for (const float difference : {0.0f, 1e-6f, 1e-3f}) {
        const double unit = format == adasum::wire_format::bfloat16 ? 0x1p-8 : 0x1p-11;
        CAPTURE(unit);
        CAPTURE(size);
        CAPTURE(difference);
        auto gradients = random_gradients<float>(static_cast<std::size_t>(size), segs.total(), 59);
        for (std::size_t r = 1; r < gradients.size(); r += 2)
          for (std::size_t x = 0; x < segs.total(); ++x)
            gradients[r][x] = -gradients[r - 1][x] + difference * gradients[r][x];
        std::vector<float> exact(segs.total());
        adasum::adasum_tree(adasum::serial_space{}, gradients, exact, segs);
        double largest = 0;
        for (std::size_t x = 0; x < segs.total(); ++x) {
          double mass = 0;
          for (const auto& gradient : gradients) mass += std::abs(static_cast<double>(gradient[x]));
          largest = std::max(largest, mass);
        }
        adasum::options choices;
        choices.wire = format;
        for_each_schedule([&](const auto& order, const std::string& name) {
          CAPTURE(name);
          const auto ranks = reduce_on_threads<float>(gradients, segs, adasum::rules::adasum{}, order, choices);
          check_same_on_all_ranks(ranks);
          const auto& result = ranks.front().gradient;
          if (size == 2) {
            // As above, times 5/2: weights are 3/2, and a rounding changes them by no more than itself.
            for (std::size_t x = 0; x < segs.total(); ++x)
              CHECK(std::abs(static_cast<double>(result[x] - exact[x])) <= 2.5 * 2 * 3 * unit * largest);
          } else {
            // What is left of two that cancel has the direction of their rounding, whatever the arithmetic: the level
            // above sees another gradient. A weight of it may be large, but not what it adds: at most half of the other.
            for (std::size_t x = 0; x < segs.total(); ++x) CHECK(std::isfinite(result[x]));
            double norm = 0, mass = 0;
            for (const float value : result) norm += static_cast<double>(value) * value;
            for (const auto& gradient : gradients) {
              double square = 0;
              for (const float value : gradient) square += static_cast<double>(value) * value;
              mass += std::sqrt(square);
            }
            CHECK(std::sqrt(norm) <= std::pow(1.5, std::ceil(std::log2(size))) * mass);
          }
        });
      }
}

TEST_CASE("a value that an option does not have is refused by name") {
  const auto message = [](const adasum::options& choices) {
    std::vector<float> g(segs.total(), 1);
    try {
      adasum::adasum_allreduce(adasum::serial_space{}, adasum::self_communicator{}, g, segs, choices);
    } catch (const adasum::bad_input& e) {
      return std::string(e.what());
    }
    return std::string("returned");
  };
  const std::string call = "adasum::adasum_allreduce: options::";
  CHECK(message({.nonfinite = static_cast<adasum::nonfinite_policy>(3)}) == call + "nonfinite has no value 3");
  CHECK(message({.nonfinite = static_cast<adasum::nonfinite_policy>(-1)}) == call + "nonfinite has no value -1");
  CHECK(message({.wire = static_cast<adasum::wire_format>(3)}) == call + "wire has no value 3");
}

TEST_CASE("a timeout that is not positive is refused by every call, by name, and no rank waits") {
  using adasum::serial_space, adasum::thread_communicator;
  const auto calls = [](const thread_communicator& comm, const adasum::options& choices) {
    std::vector<float> g(segs.total(), 1), before = g;
    std::vector<std::string> messages;
    const auto note = [&](const auto& call) {
      try {
        call();
        messages.push_back("returned");
      } catch (const adasum::error& e) {
        messages.push_back(e.what());
      }
    };
    const serial_space space;
    note([&] { adasum::adasum_allreduce(space, comm, g, segs, choices); });
    note([&] { adasum::combine_allreduce(space, comm, g, adasum::rules::mean{}, segs, choices); });
    note([&] { adasum::plan_allreduce<float>(space, comm, segs, choices); });
    note([&] { adasum::plan_bucketed<float>(space, comm, std::vector{9, 91}, 200, choices); });
    CHECK(g == before);
    return messages;
  };
  const std::vector<std::string> names{"adasum::adasum_allreduce", "adasum::combine_allreduce",
                                       "adasum::plan_allreduce", "adasum::plan_bucketed"};
  for (const double seconds :
       {0.0, -1.0, -std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
    for (const bool check : {false, true})
      for (const bool everywhere : {false, true}) {
        CAPTURE(seconds);
        CAPTURE(check);
        CAPTURE(everywhere);
        const auto ranks = on_ranks(3, [&](const thread_communicator& comm) {
          adasum::options choices{.check_agreement = check};
          if (everywhere || comm.rank() == 1) choices.timeout = std::chrono::duration<double>(seconds);
          return calls(comm, choices);
        });
        for (std::size_t r = 0; r < ranks.size(); ++r) {
          REQUIRE_MESSAGE(ranks[r].value, ranks[r].description());
          REQUIRE(ranks[r].value->size() == names.size());
          for (std::size_t i = 0; i < names.size(); ++i) {
            const auto& message = (*ranks[r].value)[i];
            CAPTURE(message);
            if (everywhere || r == 1) {
              CHECK(message.find(names[i] + ": options::timeout is ") == 0);
              CHECK(message.find("it must be positive") != std::string::npos);
            } else {
              CHECK(message.find("rank 1") != std::string::npos);
            }
          }
        }
      }
}

}  // namespace test_of_core_options
