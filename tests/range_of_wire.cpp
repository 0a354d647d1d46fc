// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <adasum/adasum.hpp>
#include <adasum/bucketed.hpp>
#include <adasum/exec/threads.hpp>

#include "support/arrangements.hpp"
#include "support/every_instruction_set.hpp"
#include "support/nodes.hpp"
#include "support/random_gradients.hpp"
#include "support/thread_reduction.hpp"

namespace test_of_range_of_wire {

/// What 16-bit messages make of finite numbers beyond the ends of their format.

using namespace adasum;
using namespace adasum::test;

namespace {
constexpr wire_format sixteen_bits[] = {wire_format::bfloat16, wire_format::binary16};
constexpr float infinity = std::numeric_limits<float>::infinity();

template <number_format Format>
using packed = detail::half_bits<Format>;

constexpr float first_infinite(wire_format format) {
  return format == wire_format::binary16 ? 65520.0f : std::bit_cast<float>(0x7f7f8000u);
}
constexpr float last_zero(wire_format format) {
  return format == wire_format::binary16 ? 0x1p-25f : std::bit_cast<float>(0x8000u);
}

/// Floats on both sides of where a format begins and ends, and special ones.
std::vector<float> ends_of(wire_format format) {
  std::vector<float> all{0,
                         1,
                         infinity,
                         std::numeric_limits<float>::quiet_NaN(),
                         std::numeric_limits<float>::max(),
                         std::numeric_limits<float>::denorm_min()};
  for (const float end : {first_infinite(format), last_zero(format)})
    for (const int away : {-2, -1, 0, 1, 2})
      all.push_back(std::bit_cast<float>(std::bit_cast<std::uint32_t>(end) + static_cast<std::uint32_t>(away)));
  const auto positive = all.size();
  for (std::size_t i = 0; i < positive; ++i) all.push_back(-all[i]);
  return all;
}

template <number_format Format, class Space>
void check_copies(const Space& space, wire_format format, const std::vector<float>& from) {
  std::vector<packed<Format>> there(from.size());
  std::vector<float> back(from.size());
  space.copy(from.data(), there.data(), from.size());
  space.copy(static_cast<const packed<Format>*>(there.data()), back.data(), from.size());
  space.fence();
  std::size_t wrong = 0;
  for (std::size_t x = 0; x < from.size(); ++x) {
    const float magnitude = std::abs(from[x]);
    const bool right = std::isnan(from[x]) ? std::isnan(back[x])
                                           : std::isinf(back[x]) == (magnitude >= first_infinite(format)) &&
                                                 (back[x] == 0) == (magnitude <= last_zero(format)) &&
                                                 std::signbit(back[x]) == std::signbit(from[x]);
    if (!right) ++wrong;
  }
  CHECK(wrong == 0);
}

/// The format's lossy elements of otherwise small whole numbers: each on one rank, the others zero there.
struct lossy_gradients {
  std::vector<std::vector<float>> of_rank;
  std::vector<float> sum, rounded_sum;

  lossy_gradients(wire_format format, int ranks, std::size_t length) : sum(length), rounded_sum(length) {
    const bool half = format == wire_format::binary16;
    const float large = half ? 1e5f : std::numeric_limits<float>::max(), small = half ? -1e-9f : 1e-41f;
    of_rank.assign(static_cast<std::size_t>(ranks), std::vector<float>(length));
    for (std::size_t x = 0; x < length; ++x) {
      auto& element = of_rank[x * 7 % of_rank.size()][x];
      if (x % 5 == 1) {
        sum[x] = element = large;
        rounded_sum[x] = infinity;
      } else if (x % 3 == 1) {
        sum[x] = element = small;
      } else {
        for (auto& one : of_rank) one[x] = static_cast<float>(x % 8);
        sum[x] = rounded_sum[x] = static_cast<float>(of_rank.size() * (x % 8));
      }
    }
  }
};

/// The same in binary16, with small whole numbers in place of what overflows.
lossy_gradients without_overflow(int ranks, std::size_t length) {
  lossy_gradients found(wire_format::binary16, ranks, length);
  for (auto& gradient : found.of_rank)
    for (float& element : gradient)
      if (element > 10) element = 3;
  for (float& element : found.rounded_sum)
    if (std::isinf(element)) element = 3;
  return found;
}

/// Without inner products, in which what has overflowed would show: then the whole segment is NaN.
options rounded(wire_format format) {
  return {.check_agreement = false, .measure = measuring::when_needed, .wire = format};
}

const segments segs{9, 0, 70, 22};

/// What function(communicator) returns on ranks of these nodes.
template <class Function>
auto on_nodes(const std::vector<int>& nodes, const Function& function) {
  const auto blocks = node_communicator::make_blocks();
  return results_of(on_ranks(static_cast<int>(nodes.size()), [&](const thread_communicator& threads) {
    return function(node_communicator(threads, nodes, blocks));
  }));
}

/// Halving, in memory where the ranks that meet share it.
struct halving_in_memory : schedules::recursive_halving {
  static constexpr std::string_view name = "halving_in_memory";
  static constexpr shared_memory_use uses_shared_memory(int, const schedule_input&) {
    return shared_memory_use::buffer;
  }
};

}  // namespace

TEST_CASE("copies to 16 bits: what becomes infinite, and what zero, by every instruction set and several threads") {
  for (const std::size_t length : {0u, 1u, 7u, 32u, 1001u, 300'000u}) {
    CAPTURE(length);
    for (const auto format : sixteen_bits) {
      const auto ends = ends_of(format);
      std::vector<float> from(length);
      for (std::size_t x = 0; x < length; ++x) from[x] = ends[x * 7 % ends.size()];
      const auto check = [&](const auto& space) {
        if (format == wire_format::bfloat16)
          check_copies<number_format::bfloat16>(space, format, from);
        else
          check_copies<number_format::binary16>(space, format, from);
      };
      for (const auto set : every_instruction_set()) check(serial_space(set));
      check(threads_space(3));
    }
  }
}

TEST_CASE("every schedule: what overflows is infinite in the result, what vanishes is zero, and nothing else changes") {
  for (const auto format : sixteen_bits)
    for (const int size : {1, 2, 3, 4, 5, 8, 9}) {
      CAPTURE(size);
      const lossy_gradients given(format, size, segs.total());
      for_each_message_schedule([&](const auto& order, const std::string& name) {
        CAPTURE(name);
        const auto ranks = reduce_on_threads<float>(given.of_rank, segs, rules::sum{}, order, rounded(format));
        check_same_on_all_ranks(ranks);
        CHECK(ranks.front().gradient == given.rounded_sum);
      });
      // Nothing is rounded there.
      if (size > 1)
        for (const auto& rank :
             reduce_on_threads<float>(given.of_rank, segs, rules::sum{}, schedules::shared_memory{}, rounded(format))) {
          CHECK(rank.found.wire() == wire_format::same);
          CHECK(rank.gradient == given.sum);
        }
    }
}

TEST_CASE("fewer elements than ranks: all of them overflow") {
  for (const std::size_t length : {1u, 2u, 3u, 5u})
    for (const int size : {2, 3, 4, 5, 8, 9}) {
      CAPTURE(length);
      CAPTURE(size);
      std::vector<std::vector<float>> gradients(static_cast<std::size_t>(size), std::vector<float>(length));
      for (std::size_t x = 0; x < length; ++x) gradients[x % gradients.size()][x] = 1e5f;
      for_each_message_schedule([&](const auto& order, const std::string& name) {
        CAPTURE(name);
        for (const auto& rank :
             reduce_on_threads<float>(gradients, segments{length}, rules::sum{}, order, rounded(wire_format::binary16)))
          CHECK(rank.gradient == std::vector<float>(length, infinity));
      });
    }
}

TEST_CASE("sums that overflow where no gradient does, by hand") {
  // Four ranks. Element 0: 40,000 on each overflows as a sum of two, on its way to the next stage. Element 1: 20,000 on each
  // overflows in the result. Element 2: infinite from the beginning. Element 3: zeros, of either sign.
  const std::vector<std::vector<float>> gradients(4, {40'000, 20'000, infinity, -0.0f});
  const auto check = [&](const auto& order) {
    for (const auto& rank :
         reduce_on_threads<float>(gradients, segments{4}, rules::sum{}, order, rounded(wire_format::binary16)))
      CHECK(rank.gradient == std::vector<float>{infinity, infinity, infinity, 0});
  };
  check(schedules::recursive_doubling{});
  check(schedules::recursive_halving{});
}

TEST_CASE("nodes that share memory, and messages between them") {
  for (const auto& nodes : {nodes_of({2, 2}), nodes_of({3, 2}), nodes_of({1, 3}), nodes_of({2, 2, 1}),
                            std::vector{0, 1, 0, 1, 2}, nodes_of({12, 10}), nodes_of({9, 1})})
    for (const std::size_t length : {101u, 3u}) {
      CAPTURE(nodes.size());
      CAPTURE(length);
      const lossy_gradients given(wire_format::binary16, static_cast<int>(nodes.size()), length);
      const auto check = [&](const auto& order) {
        const auto ranks = on_nodes(nodes, [&](const node_communicator& comm) {
          auto plan = plan_allreduce<float>(serial_space{}, comm, segments{length}, rules::sum{}, order,
                                            rounded(wire_format::binary16));
          const auto buffer = plan.buffer();
          for (int run = 0; run < 3; ++run) {
            std::ranges::copy(given.of_rank[static_cast<std::size_t>(comm.rank())], buffer.begin());
            plan();
          }
          return std::pair{std::vector<float>(buffer.begin(), buffer.end()), plan.last_report().wire()};
        });
        for (const auto& [result, format] : ranks) {
          CHECK(format == wire_format::binary16);
          CHECK(result == given.rounded_sum);
        }
      };
      check(schedules::hierarchical{nodes, rules::sum{}, schedules::recursive_halving{}});
      check(schedules::hierarchical{nodes, rules::sum{}, schedules::recursive_doubling{}});
      check(schedules::automatic{});
    }
}

TEST_CASE("messages first, and then memory that a node shares") {
  for (const auto& nodes : {std::vector{0, 1, 0, 1}, std::vector{0, 1, 2, 3, 0, 1, 2, 3}})
    for (const std::size_t length : {1u, 2u, 3u, 101u}) {
      CAPTURE(nodes.size());
      CAPTURE(length);
      // In the first stage, two ranks send each other half of this; from there on it is infinite.
      const std::vector<float> gradient(length, 1e5f);
      const auto results = on_nodes(nodes, [&](const node_communicator& comm) {
        auto plan = plan_allreduce<float>(serial_space{}, comm, segments{length}, rules::sum{}, halving_in_memory{},
                                          rounded(wire_format::binary16));
        const auto buffer = plan.buffer();
        std::ranges::copy(gradient, buffer.begin());
        plan();
        return std::vector<float>(buffer.begin(), buffer.end());
      });
      for (const auto& result : results) CHECK(result == std::vector<float>(length, infinity));
    }
}

TEST_CASE("buckets") {
  for (const int size : {2, 3, 4, 5}) {
    CAPTURE(size);
    const std::vector<std::size_t> lengths{40, 8, 60, 33};
    const auto given = without_overflow(size, 141);
    for (const auto& result : results_of(on_ranks(size, [&](const thread_communicator& comm) {
           auto values = given.of_rank[static_cast<std::size_t>(comm.rank())];
           auto buckets =
               plan_bucketed<float>(serial_space{}, comm, lengths, 64 * sizeof(float), rounded(wire_format::binary16),
                                    rules::sum{}, schedules::recursive_halving{});
           std::size_t at = 0;
           for (std::size_t p = 0; p < lengths.size(); ++p) {
             buckets.ready(p, std::span(values).subspan(at, lengths[p]));
             at += lengths[p];
           }
           for (const report* const one : buckets.wait()) CHECK(one->wire() == wire_format::binary16);
           return values;
         })))
      CHECK(result == given.rounded_sum);
  }
}

TEST_CASE("policies look at the gradients, not at what becomes of them on their way") {
  for (const auto policy : {nonfinite_policy::propagate, nonfinite_policy::exclude, nonfinite_policy::raise}) {
    const options choices{.nonfinite = policy, .wire = wire_format::binary16};
    const auto ranks = reduce_on_threads<float>({{1e5f, 1}, {1, 1}}, segments{1, 1}, rules::adasum{},
                                                schedules::recursive_doubling{}, choices);
    for (const auto& rank : ranks) {
      CHECK((std::isnan(rank.gradient[0]) && rank.gradient[1] == 1));
      CHECK(rank.found.excluded().empty());
      CHECK(rank.found.nonfinite() == std::vector{nonfinite_input{0, 0}});
    }
  }
}

}  // namespace test_of_range_of_wire
