// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <adasum/adasum.hpp>

#include "support/disagreements.hpp"
#include "support/ranks.hpp"

/// With agreement checks on, every rank learns what is wrong, and with whom, before anything changes.

using namespace adasum::test;

namespace {

/// Every rank threw the same agreement_error, which names what and who, and kept its gradient.
void check_agreement_errors(const std::vector<outcome<ending>>& ranks, const std::string& mentions, int culprit) {
  for (const auto& rank : ranks) {
    REQUIRE_MESSAGE(rank.value, rank.description());
    const auto& end = *rank.value;
    CHECK_MESSAGE(end.how == way::agreement_error, to_string(end.how), ": ", end.message);
    CHECK(end.message == ranks.front().value->message);
    CHECK_MESSAGE(end.message.find(mentions) != std::string::npos, end.message);
    CHECK_MESSAGE(end.message.find("rank " + std::to_string(culprit)) != std::string::npos, end.message);
    CHECK(end.unchanged);
  }
}

}  // namespace

TEST_CASE("ranks that disagree all throw the same agreement_error") {
  for_each_disagreement([](const std::string& mentions, const auto& call) {
    for (const int size : {2, 3, 5, 8})
      for (const int culprit : {0, 1, size - 1}) {
        CAPTURE(mentions);
        CAPTURE(size);
        CAPTURE(culprit);
        const auto ranks = on_ranks(size, [&](const auto& comm) { return call(comm, comm.rank() == culprit); });
        check_agreement_errors(ranks, mentions, culprit);
      }
  });
}

TEST_CASE("the message names every rank with bad input") {
  const auto ranks = on_ranks(5, [](const auto& comm) {
    const bool bad = comm.rank() == 1 || comm.rank() == 4;
    return end_of(counted(bad ? 7 : 10), [&](auto& g) {
      adasum::adasum_allreduce(adasum::serial_space{}, comm, g, adasum::segments{10}, adasum::schedules::automatic{},
                               checked);
    });
  });
  check_agreement_errors(ranks, "the gradient has 7", 1);
  check_agreement_errors(ranks, "the gradient has 7", 4);
}

TEST_CASE("after a disagreement the communicator works") {
  const auto ranks = on_ranks(3, [](const auto& comm) {
    const adasum::segments segs{10};
    auto plan = adasum::plan_allreduce<float>(adasum::serial_space{}, comm, segs, adasum::rules::mean{},
                                              adasum::schedules::recursive_halving{}, checked);
    end_of(counted(comm.rank() == 2 ? 9 : 10), [&](auto& g) { plan(g); });
    auto gradient = counted(10);
    plan(gradient);
    return gradient;
  });
  for (const auto& rank : ranks) {
    REQUIRE_MESSAGE(rank.value, rank.description());
    for (std::size_t i = 0; i < 10; ++i) CHECK((*rank.value)[i] == doctest::Approx(static_cast<double>(i + 1)));
  }
}

TEST_CASE("ranks whose schedules differ in a parameter, or cannot be built on one of them") {
  for (const std::size_t other : {4u, 3u})
    for (const int size : {4, 8}) {
      CAPTURE(other);
      CAPTURE(size);
      const auto ranks = on_ranks(size, [&](const auto& comm) {
        return end_of(counted(60), [&](auto& g) {
          const adasum::schedules::recursive_halving order{comm.rank() == 1 ? other : 2};
          adasum::adasum_allreduce(adasum::serial_space{}, comm, g, adasum::segments{60}, order, checked);
        });
      });
      check_agreement_errors(ranks, other == 3 ? "radix 3" : "schedule", 1);
    }
}

TEST_CASE("agreement checks are the default in these builds, and a choice at run time") {
  CHECK(adasum::options{}.check_agreement);
  CHECK_FALSE(adasum::options{.check_agreement = false}.check_agreement);
}
