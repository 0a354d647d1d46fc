// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <regex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <adasum/adasum.hpp>

#include "support/ranks.hpp"

namespace test_of_core_error {

using namespace adasum;

namespace {

/// What the call throws speaks of one thing as of one.
template <class Call>
void check_singular(const std::string& mentions, const Call& call) {
  std::string message = "(nothing was refused)";
  try {
    call();
  } catch (const error& problem) {
    message = problem.what();
  }
  CAPTURE(message);
  CHECK(message.find(mentions) != std::string::npos);
  CHECK_FALSE(std::regex_search(message, std::regex("(^|[^0-9.-])1 [a-z]+s\\b|are (only )?1 ")));
}

}  // namespace

TEST_CASE("a number of things") {
  using detail::counted, detail::joined;
  CHECK(joined({counted(0, "rank"), ", ", counted(1u, "rank"), ", ", counted(std::size_t{11}, "rank")}) ==
        "0 ranks, 1 rank, 11 ranks");
}

TEST_CASE("texts are made of texts and numbers") {
  using detail::joined;
  CHECK(joined({}).empty());
  const std::string two = "two";
  CHECK(joined({"one ", two, std::string_view(" three"), std::string(" four")}) == "one two three four");
  CHECK(joined({-1, " ", std::numeric_limits<std::int64_t>::min(), " ", std::numeric_limits<std::uint64_t>::max()}) ==
        "-1 -9223372036854775808 18446744073709551615");
  CHECK(joined({0.1, " ", -2.0, " ", 1e300}) == "0.1 -2 1e+300");
  CHECK(std::string(bad_input({"a ", 1, " b"}).what()) == "a 1 b");
  CHECK(std::string(timeout_error({"rank ", 3}, 3).what()) == "rank 3");
}

TEST_CASE("messages about one element, rank, segment, …") {
  const serial_space exec;
  const self_communicator comm;
  std::vector<float> one(1), two(2);
  const std::vector<std::vector<float>> single{one};
  const std::span<float> nowhere(static_cast<float*>(nullptr), 1);
  const segments cut{1};

  check_singular("the segments hold 1 element in all", [&] { adasum_allreduce(exec, comm, two, cut); });
  check_singular("a null pointer with 1 element", [&] { adasum_allreduce(exec, comm, nowhere); });
  check_singular("the gradient has 1 element", [&] { plan_allreduce<float>(exec, comm, 2)(one); });
  check_singular("1 weight before the step", [&] {
    auto plan = plan_allreduce<float>(exec, comm, 2);
    delta_allreduce(plan, one, two);
  });
  check_singular("the gradient has 1 element", [&] { plan_accumulator<float>(exec, 2).add(one); });
  check_singular("parameter 0 has 1 element", [&] { plan_bucketed<float>(exec, comm, {1, 2}, 8).ready(0, two); });
  check_singular("gradient 0 has 1 element", [&] { combine(exec, single, two, rules::mean{}); });
  check_singular("1 gradient for 2 ranks",
                 [&] { adasum_tree_by_node(exec, single, node_groups(std::vector{0, 1}), one); });
  check_singular("for 1 rank", [&] { adasum_reduce_scatter(exec, comm, two, parts{1, 1}); });
  check_singular("the parts hold 1 element in all", [&] { adasum_reduce_scatter(exec, comm, two, parts{1}); });
  check_singular("nodes are given for 1 rank",
                 [&] { schedules::hierarchical{std::vector{0}, rules::mean{}}.stages(0, 2, {}); });
  check_singular("the shard has only 1 segment", [&] { adasum_allreduce(exec, comm, two, shard{0, 0, {3}}); });
  check_singular("on 1 rank", [&] { adasum_allreduce(exec, comm, two, shard{0, 1}); });
}

TEST_CASE("messages about one byte and one second") {
  auto ranks = test::on_ranks(2, [](const thread_communicator& comm) {
    const std::array<std::byte, 1> sent{};
    std::array<std::byte, 2> received{};
    const outgoing out{1, sent};
    const incoming in{0, received};
    if (comm.rank() == 0)
      comm.exchange(serial_space{}, std::span(&out, 1), {});
    else
      comm.exchange(serial_space{}, {}, std::span(&in, 1));
    return 0;
  });
  check_singular("sent 1 byte instead of the expected 2", [&] { std::rethrow_exception(ranks[1].error); });
  CHECK(detail::text_of(std::chrono::seconds(1)) == "1 second");
  CHECK(detail::text_of(std::chrono::milliseconds(1500)) == "1.5 seconds");
  CHECK(detail::text_of(std::chrono::seconds(0)) == "0 seconds");
}

}  // namespace test_of_core_error
