// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include <adasum/adasum.hpp>
#include <adasum/detail/engine/agreement.hpp>

#include "support/disagreements.hpp"
#include "support/ranks.hpp"

namespace test_of_detail_engine_agreement {

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

/// A schedule that one rank cannot build for work in shared memory, which it finds out late.
struct broken_in_place : adasum::schedules::automatic {
  bool broken = false;
  std::vector<adasum::stage> stages(int rank, int size, const adasum::schedule_input& input) const {
    if (broken && input.in_place) throw adasum::bad_input("broken in place");
    return adasum::schedules::automatic::stages(rank, size, input);
  }
};

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

TEST_CASE("a text that is too long ends with whole characters") {
  using adasum::detail::call_signature;
  call_signature::text<16> field{};
  const auto kept = [&](const char* text) {
    call_signature::set(field, text);
    return call_signature::get(field);
  };
  CHECK(kept("fifteen letters") == "fifteen letters");
  CHECK(kept("sixteen letters!") == "sixteen lett…");
  CHECK(kept("") == "");
  CHECK(kept("eleven char…, and more") == "eleven char…");  // which begins at the last of 12 bytes
  CHECK(kept("ten charac…, and more") == "ten charac…");
  CHECK(kept("nine char…, and more") == "nine char……");
}

TEST_CASE("one mistake that all ranks have made is told once") {
  const auto of = [](int size) {
    return results_of(on_ranks(size, [](const auto& comm) {
      return end_of(counted(7), [&](auto& g) {
        adasum::adasum_allreduce(adasum::serial_space{}, comm, g, adasum::segments{10}, checked);
      });
    }));
  };
  const std::string mistake = "adasum::adasum_allreduce: the segments hold 10 elements in all, the gradient has 7";
  for (const auto& end : of(3)) CHECK(end.message == "all ranks: " + mistake);
  CHECK(of(1).front().message == mistake);
}

namespace {

struct tuned : adasum::rules::adasum {
  std::vector<double> numbers;
  std::vector<double> parameters() const { return numbers; }
};

}  // namespace

TEST_CASE("where rules differ in their parameters, the message has those of two ranks") {
  const auto message = [](const std::vector<double>& first, const std::vector<double>& second) {
    const auto ranks = on_ranks(3, [&](const adasum::thread_communicator& comm) {
      std::vector<float> gradient(10, 1);
      adasum::combine_allreduce(adasum::serial_space{}, comm, gradient, tuned{{}, comm.rank() == 1 ? second : first},
                                checked);
      return 0;
    });
    return ranks[2].message_of<adasum::agreement_error>().value_or("none");
  };
  const std::string beginning = "adasum: the ranks disagree on the parameters of the rule adasum: ";
  CHECK(message({0.1, 3}, {0.1, -4}) == beginning + "rank 0 has 0.1, 3, rank 1 has 0.1, -4");
  CHECK(message({}, {1e-6}) == beginning + "rank 0 has none, rank 1 has 1e-06");
  auto many = std::vector<double>(100, 1.5), others = many;
  others.back() = 2;
  CHECK(message(many, others) == beginning + "those of rank 0 and of rank 1 differ");

  const auto ranks = on_ranks(2, [&](const adasum::thread_communicator& comm) {
    std::vector<float> gradient(10, 1);
    const tuned inner{{}, {0.5, comm.rank() == 1 ? 2.0 : 1.0}};
    adasum::adasum_allreduce(adasum::serial_space{}, comm, gradient,
                             adasum::schedules::hierarchical{std::vector{0, 0}, inner}, checked);
    return 0;
  });
  for (const auto& rank : ranks)
    CHECK(rank.message_of<adasum::agreement_error>().value_or("none") ==
          "adasum: the ranks disagree on the parameters of the inner rule adasum: rank 0 has 0.5, 1, rank 1 has 0.5, 2");
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
  for (const std::size_t other : {4u, 1u})
    for (const int size : {4, 8}) {
      CAPTURE(other);
      CAPTURE(size);
      const auto ranks = on_ranks(size, [&](const auto& comm) {
        return end_of(counted(60), [&](auto& g) {
          const adasum::schedules::recursive_halving order{comm.rank() == 1 ? other : 2};
          adasum::adasum_allreduce(adasum::serial_space{}, comm, g, adasum::segments{60}, order, checked);
        });
      });
      check_agreement_errors(ranks, other == 1 ? "radix 1" : "schedule", 1);
    }
}

TEST_CASE("unchecked: ranks whose schedules differ in a parameter are told that they do different things") {
  const auto check = [](const auto& order_of) {
    for (const bool plans : {false, true}) {
      const auto ranks = on_ranks(4, [&](const auto& comm) {
        return end_of(counted(60), [&](auto& g) {
          const adasum::serial_space space;
          const auto order = order_of(comm.rank() == 3);
          if (plans)
            adasum::plan_allreduce<float>(space, comm, 60, order, unchecked)(g);
          else
            adasum::adasum_allreduce(space, comm, g, order, unchecked);
        });
      });
      for (const auto& rank : ranks) {
        REQUIRE_MESSAGE(rank.value, rank.description());
        CHECK(rank.value->how == way::communication_error);
        CHECK_MESSAGE(rank.value->message.find("different calls") != std::string::npos, rank.value->message);
      }
    }
  };
  using namespace adasum::schedules;
  check([](bool other) { return recursive_halving{.radix = other ? std::size_t{4} : std::size_t{2}}; });
  check([](bool other) {
    return hierarchical{other ? std::vector{0, 1, 0, 1} : std::vector{0, 0, 1, 1}, adasum::rules::mean{}};
  });
  check([](bool other) {
    return hierarchical{other ? std::vector{0, 0, 1, 2} : std::vector{0, 0, 1, 1}, adasum::rules::mean{}};
  });
}

TEST_CASE("agreement checks are the default in these builds, and a choice at run time") {
  CHECK(adasum::options{}.check_agreement);
  CHECK_FALSE(adasum::options{.check_agreement = false}.check_agreement);
}

TEST_CASE("a plan in shared memory on one rank, by messages on the others; checks on for some only") {
  for (const int size : {2, 3, 5})
    for (int culprit = 0; culprit < size; ++culprit) {
      CAPTURE(size);
      CAPTURE(culprit);
      const adasum::serial_space space;
      const auto plan = [&](const auto& comm, const auto& order, const adasum::options& choices) {
        return end_of(counted(60), [&](auto& g) {
          auto made = adasum::plan_allreduce<float>(space, comm, adasum::segments{60}, order, choices);
          made(g);
        });
      };
      const auto ways = on_ranks(size, [&](const auto& comm) {
        return comm.rank() == culprit ? plan(comm, adasum::schedules::shared_memory{}, checked)
                                      : plan(comm, adasum::schedules::recursive_doubling{}, checked);
      });
      check_agreement_errors(ways, "schedule", culprit == 0 ? 1 : culprit);

      const auto some = on_ranks(size, [&](const auto& comm) {
        const auto& choices = comm.rank() == culprit ? checked : unchecked;
        const auto single = end_of(
            counted(60), [&](auto& g) { adasum::adasum_allreduce(space, comm, g, adasum::segments{60}, choices); });
        const auto planned = plan(comm, adasum::schedules::automatic{}, choices);
        auto again = counted(60);
        adasum::adasum_allreduce(space, comm, again, unchecked);  // the communicator works
        return std::vector{single, planned};
      });
      for (const auto& rank : some) {
        REQUIRE_MESSAGE(rank.value, rank.description());
        for (const auto& end : *rank.value) {
          CHECK(end.how == way::communication_error);
          CHECK_MESSAGE(
              end.message.find("check_agreement is on for some ranks and off for others") != std::string::npos,
              end.message);
          CHECK(end.unchanged);
        }
      }
    }
}

TEST_CASE("unchecked: segments that do not add up, by any measure, are an error on every rank") {
  for (const bool check : {false, true})
    for (const int size : {2, 3, 4})
      for (int culprit = 0; culprit < size; ++culprit)
        for (const auto& wrong : {adasum::segments{9000}, adasum::segments{~std::size_t{0} >> 14}, adasum::segments{},
                                  adasum::segments{4, 5}, adasum::segments{10001}}) {
          CAPTURE(size);
          CAPTURE(culprit);
          CAPTURE(wrong.total());
          const auto ranks = on_ranks(size, [&](const auto& comm) {
            const adasum::serial_space space;
            const auto end = end_of(counted(10000), [&](auto& g) {
              adasum::adasum_allreduce(space, comm, g, comm.rank() == culprit ? wrong : adasum::segments{10000},
                                       check ? checked : unchecked);
            });
            auto again = counted(10000);
            adasum::adasum_allreduce(space, comm, again, unchecked);
            CHECK(again[9999] == doctest::Approx(10000));
            return end;
          });
          for (std::size_t r = 0; r < ranks.size(); ++r) {
            REQUIRE_MESSAGE(ranks[r].value, ranks[r].description());
            const auto& end = *ranks[r].value;
            const bool bad = static_cast<int>(r) == culprit;
            CHECK(end.how == (check ? way::agreement_error : bad ? way::bad_input : way::communication_error));
            CHECK(end.unchanged);
            if (bad || check) CHECK_MESSAGE(end.message.find("the segments hold") != std::string::npos, end.message);
            CHECK_MESSAGE((bad || end.message.find("rank " + std::to_string(culprit)) != std::string::npos),
                          end.message);
          }
        }
}

TEST_CASE("a message that did not come whole: nothing is learnt from what is in its buffer") {
  const std::size_t none[] = {0};
  for (const int rank : {0, 1, 4}) {
    CAPTURE(rank);
    adasum::detail::agreement_memory memory(5);
    adasum::detail::agreement agreement(adasum::detail::call_signature{}, false, adasum::segments_view{none}, rank, 5,
                                        memory);
    std::vector<adasum::outgoing> out;
    std::vector<adasum::incoming> in;
    std::vector<std::string> causes;
    for (; agreement.next(out, in); out.clear(), in.clear()) {
      // The beginning of a gradient: a message of another kind, of which only the first bytes were taken.
      REQUIRE(in.size() == 1);
      std::ranges::fill(in.front().bytes, std::byte{0});
      const auto cause = "rank " + std::to_string(in.front().peer) + " sent 8 bytes";
      REQUIRE(agreement.fail(std::make_exception_ptr(adasum::communication_error(cause))));
      causes.push_back(cause);
    }
    CHECK(causes.size() == 3);
    CHECK_THROWS_WITH_AS(agreement.require(), causes.front().c_str(), adasum::communication_error);
  }
}

TEST_CASE("machines that differ are an error on every rank, whether ranks would do the same or not") {
  using adasum::schedules::machine;
  const machine usual, slow_copies{.shared = {.per_byte = 1e-3}}, hardly_different{.across = {.latency = 1.0000001e-6}},
      bad{.per_term = -1};
  for (const auto* const other : {&slow_copies, &hardly_different, &bad, static_cast<const machine*>(nullptr)})
    for (const bool check : {false, true})
      for (const int size : {2, 3, 5})
        for (const int culprit : {0, size - 1}) {
          CAPTURE(other - &usual);
          CAPTURE(check);
          CAPTURE(size);
          CAPTURE(culprit);
          const auto ranks = on_ranks(size, [&](const auto& comm) {
            const adasum::serial_space space;
            const auto& choices = check ? checked : unchecked;
            adasum::schedules::automatic order{.on = usual};
            if (comm.rank() == culprit) order.on = other ? std::optional(*other) : std::nullopt;
            const auto single =
                end_of(counted(20'000), [&](auto& g) { adasum::adasum_allreduce(space, comm, g, order, choices); });
            const auto planned = end_of(counted(20'000), [&](auto& g) {
              auto plan = adasum::plan_allreduce<float>(space, comm, g.size(), order, choices);
              plan.buffer();  // which may be shared
              plan(g);
            });
            auto again = counted(20'000);
            adasum::adasum_allreduce(space, comm, again, adasum::schedules::automatic{.on = usual}, choices);
            return std::vector{single, planned};
          });
          for (const auto& rank : ranks) {
            REQUIRE_MESSAGE(rank.value, rank.description());
            for (const auto& end : *rank.value) {
              const bool throws_own = !check && other == &bad && end.how == way::bad_input;
              CHECK_MESSAGE((throws_own || end.how == (check ? way::agreement_error : way::communication_error)),
                            to_string(end.how), ": ", end.message);
              CHECK(end.unchanged);
              if (check)
                CHECK_MESSAGE(end.message.find(other == &bad ? "per_term" : "parameters of the schedule automatic") !=
                                  std::string::npos,
                              end.message);
            }
          }
        }
}

TEST_CASE("a schedule that one rank cannot build for shared memory is an error on every rank") {
  const auto ranks = on_ranks(3, [](const auto& comm) {
    return end_of(counted(60), [&](auto&) {
      broken_in_place order;
      order.broken = comm.rank() == 1;
      adasum::plan_allreduce<float>(adasum::serial_space{}, comm, adasum::segments{60}, order, checked);
    });
  });
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    REQUIRE_MESSAGE(ranks[r].value, ranks[r].description());
    CHECK(ranks[r].value->how == (r == 1 ? way::bad_input : way::agreement_error));
    CHECK_MESSAGE(ranks[r].value->message.find("broken in place") != std::string::npos, ranks[r].value->message);
  }
}

}  // namespace test_of_detail_engine_agreement
