// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <adasum/adasum.hpp>
#include <adasum/schedules/levels.hpp>
#include <adasum/testing.hpp>

#include "support/arrangements.hpp"
#include "support/bits.hpp"
#include "support/nodes.hpp"
#include "support/parts.hpp"
#include "support/random_gradients.hpp"
#include "support/ranks.hpp"
#include "support/reduction.hpp"
#include "support/thread_reduction.hpp"

namespace test_of_schedule_of_the_user {

/// Stages that check_schedule allows and no schedule of the library has, in memory that ranks share.

using namespace adasum;
using namespace adasum::test;

namespace {

const serial_space exec;
const rules::adasum rule;

/// One stage of all ranks, which are named in another order where their inner products are added.
struct added_backwards {
  static constexpr std::string_view name = "added_backwards";
  static constexpr bool supports_gram_rules = true;

  static shared_memory_use uses_shared_memory(int, const schedule_input&) { return shared_memory_use::buffer; }
  static std::vector<stage> stages(int rank, int size, const schedule_input& input) {
    auto found = schedules::all_to_all{}.stages(rank, size, input);
    for (auto& one : found) std::ranges::reverse(one.sum_over);
    return found;
  }
};

/// Levels of two or three ranks, of which only some go on.
struct few_go_on {
  static constexpr std::string_view name = "few_go_on";
  static constexpr bool supports_gram_rules = false;
  std::size_t shares = 1;
  shared_memory_use use = shared_memory_use::buffer;
  friend bool operator==(const few_go_on&, const few_go_on&) = default;

  shared_memory_use uses_shared_memory(int, const schedule_input&) const { return use; }
  std::vector<stage> stages(int rank, int size, const schedule_input& input) const {
    return detail::level_tree(static_cast<std::size_t>(size), 2, detail::large_primes::kept, shares)
        .stages(static_cast<std::size_t>(rank), {0, input.length});
  }
};

/// Stages for a rule that it does not bring.
struct without_inner_rule {
  static constexpr std::string_view name = "without_inner_rule";
  static constexpr bool supports_gram_rules = false;
  static std::vector<stage> stages(int rank, int size, const schedule_input& input) {
    auto found = schedules::recursive_doubling{}.stages(rank, size, input);
    for (auto& one : found) one.inner = true;
    return found;
  }
  friend bool operator==(const without_inner_rule&, const without_inner_rule&) = default;
};

/// Two runs in the buffer of make_plan(communicator), all ranks being on one node: where each rank's part lies, and what the
/// buffer holds.
template <class MakePlan>
auto in_buffer(const std::vector<std::vector<float>>& gradients, const MakePlan& make_plan) {
  const std::vector<int> one_node(gradients.size());
  const auto blocks = node_communicator::make_blocks();
  return on_ranks(static_cast<int>(gradients.size()), [&](const thread_communicator& threads) {
    const node_communicator comm(threads, one_node, blocks);
    auto plan = make_plan(comm);
    const auto buffer = plan.buffer();
    for (int run = 0; run < 2; ++run) {
      std::ranges::copy(gradients[static_cast<std::size_t>(comm.rank())], buffer.begin());
      plan();
    }
    return std::pair(std::vector<float>(buffer.begin(), buffer.end()), plan.part());
  });
}

}  // namespace

TEST_CASE("inner products that are added in any order of ranks") {
  const segments segs{300, 0, 700};
  for (const int size : {2, 3, 5}) {
    CAPTURE(size);
    const auto gradients = random_gradients<float>(static_cast<std::size_t>(size), segs.total(), 3);
    const auto expected = expectation::of<float>(rule, gradients, segs);
    check_schedule(added_backwards{}, size);
    const auto ranks = results_of(in_buffer(gradients, [&](const auto& comm) {
      return plan_reduce_scatter<float>(exec, comm, segs, rule, added_backwards{});
    }));
    std::vector<float> together(segs.total());
    for (const auto& [buffer, part] : ranks)
      for (auto x = part.begin; x < part.end; ++x) together[x] = buffer[x];
    CHECK(worst_error_over_bound(together, expected.exact.values, expected.bounds, segs) <= 1);
  }
}

TEST_CASE("levels in memory at which ranks stay behind: a part for each rank") {
  const segments segs{300, 0, 700};
  for (const auto& some : {std::pair(4, 1), {4, 3}, {6, 5}, {12, 7}, {12, 1}}) {
    const int size = some.first, shares = some.second;
    CAPTURE(size);
    CAPTURE(shares);
    const few_go_on order{static_cast<std::size_t>(shares)};
    check_schedule(order, size);
    const auto gradients = random_gradients<float>(static_cast<std::size_t>(size), segs.total(), 3);
    const auto whole = reduce_on_threads<float>(gradients, segs, rule, order).front().gradient;
    for (const auto& given : some_parts(segs.total(), size)) {
      const auto ranks = results_of(in_buffer(gradients, [&](const auto& comm) {
        return plan_reduce_scatter<float>(exec, comm, segs, given, rule, order);
      }));
      for (const auto& [buffer, part] : ranks) CHECK(same_elements(buffer, whole, part));
    }
  }
}

TEST_CASE("levels in memory at which ranks stay behind: all ranks take the same way, or refuse it") {
  const segments segs{300, 0, 700};
  for (const auto& some : {std::pair(4, 1), {6, 5}, {6, 6}})
    for (const auto use :
         {shared_memory_use::buffer_if_all, shared_memory_use::preferred, shared_memory_use::required}) {
      const int size = some.first, shares = some.second;
      CAPTURE(size);
      CAPTURE(shares);
      CAPTURE(static_cast<int>(use));
      const few_go_on order{static_cast<std::size_t>(shares), use};
      const auto gradients = random_gradients<float>(static_cast<std::size_t>(size), segs.total(), 3);
      const auto ways = on_ranks(size, [&](const thread_communicator& comm) {
        auto gradient = gradients[static_cast<std::size_t>(comm.rank())];
        auto plan = plan_allreduce<float>(exec, comm, segs, rule, order);
        plan(gradient);
        return gradient;
      });
      const bool refused = use == shared_memory_use::required && shares < size;
      for (const auto& rank : ways) {
        CHECK(rank.value.has_value() != refused);
        if (rank.value && ways.front().value) CHECK(same_bits(*rank.value, *ways.front().value));
      }
    }
}

TEST_CASE("stages that are marked as inner are refused by all ranks where the schedule has no inner rule") {
  const auto ranks = on_ranks(3, [](const thread_communicator& comm) {
    std::vector<float> gradient(8, 1);
    combine_allreduce(exec, comm, gradient, rule, without_inner_rule{});
    return gradient;
  });
  for (const auto& rank : ranks) {
    const auto message = rank.message_of<adasum::error>().value_or("");
    CHECK(message.find("the schedule without_inner_rule marks stages as inner") != message.npos);
  }
}

}  // namespace test_of_schedule_of_the_user
