// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <adasum/adasum.hpp>
#include <adasum/bucketed.hpp>
#include <adasum/core/report_writer.hpp>
#include <adasum/exec/threads.hpp>
#include <adasum/report_text.hpp>

#include "support/arrangements.hpp"
#include "support/every_instruction_set.hpp"
#include "support/nodes.hpp"
#include "support/random_gradients.hpp"
#include "support/thread_reduction.hpp"

namespace test_of_lost_on_wire {

/// What 16-bit messages lose of finite numbers, and the report's counts of it.

using namespace adasum;
using namespace adasum::test;

namespace {
constexpr wire_format sixteen_bits[] = {wire_format::bfloat16, wire_format::binary16};
constexpr float infinity = std::numeric_limits<float>::infinity();

template <number_format Format>
using packed = detail::packed_element<Format>;

/// What all ranks have lost.
wire_losses total_of(const std::vector<reduced<float>>& ranks) {
  wire_losses sum;
  for (const auto& rank : ranks) sum += rank.found.lost_on_wire().value();
  return sum;
}
wire_losses total_of(const std::vector<std::optional<wire_losses>>& ranks) {
  wire_losses sum;
  for (const auto& rank : ranks) sum += rank.value();
  return sum;
}

/// Floats on both sides of where a format begins and ends, and special ones.
std::vector<float> ends_of(wire_format format) {
  const bool half = format == wire_format::binary16;
  const float first_infinite = half ? 65520.0f : std::bit_cast<float>(0x7f7f8000u);
  const float last_zero = half ? 0x1p-25f : std::bit_cast<float>(0x8000u);
  std::vector<float> all{0,
                         1,
                         infinity,
                         std::numeric_limits<float>::quiet_NaN(),
                         std::numeric_limits<float>::max(),
                         std::numeric_limits<float>::denorm_min()};
  for (const float end : {first_infinite, last_zero})
    for (const int away : {-2, -1, 0, 1, 2})
      all.push_back(std::bit_cast<float>(std::bit_cast<std::uint32_t>(end) + static_cast<std::uint32_t>(away)));
  const auto positive = all.size();
  for (std::size_t i = 0; i < positive; ++i) all.push_back(-all[i]);
  return all;
}

/// Told from the elements before and after.
wire_losses losses_between(const std::vector<float>& before, const std::vector<float>& after) {
  wire_losses found;
  for (std::size_t x = 0; x < before.size(); ++x) {
    if (std::isfinite(before[x]) && std::isinf(after[x])) ++found.overflowed;
    if (before[x] != 0 && after[x] == 0) ++found.vanished;
  }
  return found;
}

template <number_format Format, class Space>
void check_counts(const Space& space, const std::vector<float>& from) {
  std::vector<packed<Format>> counting(from.size()), plain(from.size());
  std::vector<float> back(from.size());
  wire_losses found{1000, 2000};  // is added to
  space.copy(from.data(), counting.data(), from.size(), found);
  space.copy(from.data(), plain.data(), from.size());
  space.copy(static_cast<const packed<Format>*>(plain.data()), back.data(), from.size());
  space.fence();
  wire_losses expected{1000, 2000};
  expected += losses_between(from, back);
  CHECK(found == expected);
  CHECK(std::ranges::equal(std::as_bytes(std::span(counting)), std::as_bytes(std::span(plain))));
}

/// The format's lossy elements of otherwise small whole numbers: each on one rank, the others zero there. Whichever rank
/// rounds first what holds it loses it, once.
struct lossy_gradients {
  wire_losses expected;
  std::vector<std::vector<float>> of_rank;

  lossy_gradients(wire_format format, int ranks, std::size_t length) {
    const bool half = format == wire_format::binary16;
    const float large = half ? 1e5f : std::numeric_limits<float>::max(), small = half ? -1e-9f : 1e-41f;
    of_rank.assign(static_cast<std::size_t>(ranks), std::vector<float>(length));
    for (std::size_t x = 0; x < length; ++x) {
      auto& element = of_rank[x * 7 % of_rank.size()][x];
      if (x % 5 == 1) {
        element = large;
        ++expected.overflowed;
      } else if (x % 3 == 1) {
        element = small;
        ++expected.vanished;
      } else {
        for (auto& one : of_rank) one[x] = static_cast<float>(x % 8);
      }
    }
  }
};

/// The same, with small whole numbers in place of what overflows.
lossy_gradients without_overflow(int ranks, std::size_t length) {
  lossy_gradients found(wire_format::binary16, ranks, length);
  found.expected.overflowed = 0;
  for (auto& gradient : found.of_rank)
    for (float& element : gradient)
      if (element > 10) element = 3;
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

TEST_CASE("counts of a copy to 16 bits: what its result shows, by every instruction set and several threads") {
  for (const std::size_t length : {0u, 1u, 7u, 32u, 1001u, 300'000u}) {
    CAPTURE(length);
    for (const auto format : sixteen_bits) {
      const auto ends = ends_of(format);
      std::vector<float> from(length);
      for (std::size_t x = 0; x < length; ++x) from[x] = ends[x * 7 % ends.size()];
      const auto check = [&](const auto& space) {
        if (format == wire_format::bfloat16)
          check_counts<number_format::bfloat16>(space, from);
        else
          check_counts<number_format::binary16>(space, from);
      };
      for (const auto set : every_instruction_set()) check(serial_space(set));
      check(threads_space(3));
    }
  }
}

TEST_CASE("every schedule: what overflows or vanishes counts once, on the rank that rounds it") {
  for (const auto format : sixteen_bits)
    for (const int size : {1, 2, 3, 4, 5, 8, 9}) {
      CAPTURE(size);
      const lossy_gradients given(format, size, segs.total());
      for_each_message_schedule([&](const auto& order, const std::string& name) {
        CAPTURE(name);
        const auto ranks = reduce_on_threads<float>(given.of_rank, segs, rules::sum{}, order, rounded(format));
        check_same_on_all_ranks(ranks);
        CHECK(total_of(ranks) == given.expected);
        CHECK(static_cast<std::uint64_t>(std::ranges::count(ranks.front().gradient, infinity)) ==
              given.expected.overflowed);
      });
      // Nothing is rounded there.
      if (size > 1)
        for (const auto& rank :
             reduce_on_threads<float>(given.of_rank, segs, rules::sum{}, schedules::shared_memory{}, rounded(format)))
          CHECK(rank.found.lost_on_wire() == wire_losses{});
    }
}

TEST_CASE("fewer elements than ranks: what overflows counts once") {
  for (const std::size_t length : {1u, 2u, 3u, 5u})
    for (const int size : {2, 3, 4, 5, 8, 9}) {
      CAPTURE(length);
      CAPTURE(size);
      // All of them overflow.
      std::vector<std::vector<float>> gradients(static_cast<std::size_t>(size), std::vector<float>(length));
      for (std::size_t x = 0; x < length; ++x) gradients[x % gradients.size()][x] = 1e5f;
      for_each_message_schedule([&](const auto& order, const std::string& name) {
        CAPTURE(name);
        CHECK(total_of(reduce_on_threads<float>(gradients, segments{length}, rules::sum{}, order,
                                                rounded(wire_format::binary16))) == wire_losses{length, 0});
      });
    }
}

TEST_CASE("sums that overflow where no gradient does, by hand: on each rank that rounds them") {
  // Four ranks. Element 0: 40,000 on each overflows as a sum of two, on its way to the next stage. Element 1: 20,000 on each
  // overflows in the result. Element 2: infinite from the beginning. Element 3: zeros, of either sign.
  const std::vector<std::vector<float>> gradients(4, {40'000, 20'000, infinity, -0.0f});
  const auto reduced_by = [&](const auto& order) {
    const auto ranks =
        reduce_on_threads<float>(gradients, segments{4}, rules::sum{}, order, rounded(wire_format::binary16));
    for (const auto& rank : ranks) CHECK(rank.gradient == std::vector<float>{infinity, infinity, infinity, 0});
    return ranks;
  };
  // Every rank rounds each sum of two, and the result.
  for (const auto& rank : reduced_by(schedules::recursive_doubling{}))
    CHECK(rank.found.lost_on_wire() == wire_losses{2, 0});
  // One of two ranks sends the sum of two, and one has this element of the result.
  CHECK(total_of(reduced_by(schedules::recursive_halving{})) == wire_losses{2, 0});
}

TEST_CASE("a plan: the counts are each run's own") {
  const lossy_gradients given(wire_format::binary16, 4, segs.total());
  std::array<wire_losses, 3> sums;
  for (const auto& counts : results_of(on_ranks(4, [&](const thread_communicator& comm) {
         auto plan = plan_allreduce<float>(serial_space{}, comm, segs, rules::sum{}, schedules::recursive_halving{},
                                           rounded(wire_format::binary16));
         std::array<wire_losses, 3> found;
         for (std::size_t run = 0; run < 3; ++run) {
           auto gradient = given.of_rank[static_cast<std::size_t>(comm.rank())];
           if (run == 1) std::ranges::fill(gradient, 1.0f);
           plan.start(gradient);
           found[run] = plan.wait().lost_on_wire().value();
         }
         return found;
       })))
    for (std::size_t run = 0; run < 3; ++run) sums[run] += counts[run];
  CHECK(sums == std::array{given.expected, wire_losses{}, given.expected});
}

TEST_CASE("nodes that share memory, and messages between them: what overflows or vanishes counts once") {
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
          std::optional<wire_losses> found;
          for (int run = 0; run < 3; ++run) {
            std::ranges::copy(given.of_rank[static_cast<std::size_t>(comm.rank())], buffer.begin());
            found = plan().lost_on_wire();
          }
          return std::pair{found, plan.last_report().wire()};
        });
        wire_losses sum;
        for (const auto& [found, format] : ranks) {
          CHECK(format == wire_format::binary16);
          sum += found.value();
        }
        CHECK(sum == given.expected);
      };
      check(schedules::hierarchical{nodes, rules::sum{}, schedules::recursive_halving{}});
      check(schedules::hierarchical{nodes, rules::sum{}, schedules::recursive_doubling{}});
      check(schedules::automatic{});
    }
}

TEST_CASE("messages first, and then memory that a node shares: what was sent counts once") {
  for (const auto& nodes : {std::vector{0, 1, 0, 1}, std::vector{0, 1, 2, 3, 0, 1, 2, 3}})
    for (const std::size_t length : {1u, 2u, 3u, 101u}) {
      CAPTURE(nodes.size());
      CAPTURE(length);
      // In the first stage, two ranks send each other half of this; from there on it is infinite.
      const std::vector<float> gradient(length, 1e5f);
      const auto counts = on_nodes(nodes, [&](const node_communicator& comm) {
        auto plan = plan_allreduce<float>(serial_space{}, comm, segments{length}, rules::sum{}, halving_in_memory{},
                                          rounded(wire_format::binary16));
        std::ranges::copy(gradient, plan.buffer().begin());
        return plan().lost_on_wire();
      });
      CHECK(total_of(counts) == wire_losses{nodes.size() / 2 * length, 0});
    }
}

TEST_CASE("buckets: each one's report tells of its own elements; under a rule for the model there is one") {
  for (const int size : {2, 3, 4, 5}) {
    CAPTURE(size);
    const std::vector<std::size_t> lengths{40, 8, 60, 33};
    const auto given = without_overflow(size, 141);
    for (const bool whole_model : {false, true}) {
      CAPTURE(whole_model);
      const auto counts = results_of(on_ranks(size, [&](const thread_communicator& comm) {
        auto values = given.of_rank[static_cast<std::size_t>(comm.rank())];
        const auto reduce = [&](const auto& rule, const auto& order, const options& choices) {
          auto buckets = plan_bucketed<float>(serial_space{}, comm, lengths, 64 * sizeof(float), choices, rule, order);
          std::size_t at = 0;
          for (std::size_t p = 0; p < lengths.size(); ++p) {
            buckets.ready(p, std::span(values).subspan(at, lengths[p]));
            at += lengths[p];
          }
          wire_losses sum;
          for (const report* const one : buckets.wait()) sum += one->lost_on_wire().value();
          return sum;
        };
        if (whole_model)
          return reduce(rules::adacons{}, schedules::all_to_all{}, options{.wire = wire_format::binary16});
        return reduce(rules::sum{}, schedules::recursive_halving{}, rounded(wire_format::binary16));
      }));
      wire_losses sum;
      for (const auto& count : counts) sum += count;
      CHECK(sum == given.expected);
    }
  }
}

TEST_CASE("parts of the result: what overflows or vanishes counts once") {
  for (const int size : {2, 3, 4, 5, 8}) {
    CAPTURE(size);
    const lossy_gradients given(wire_format::binary16, size, segs.total());
    const auto ranks = results_of(on_ranks(size, [&](const thread_communicator& comm) {
      auto gradient = given.of_rank[static_cast<std::size_t>(comm.rank())];
      return combine_reduce_scatter(serial_space{}, comm, gradient, segs, rules::sum{}, schedules::all_to_all{},
                                    rounded(wire_format::binary16))
          .lost_on_wire()
          .value();
    }));
    wire_losses sum;
    for (const auto& rank : ranks) sum += rank;
    CHECK(sum == given.expected);
  }
}

TEST_CASE("a report of a device says that nobody has counted") {
  detail::report_writer writer(2, 1, "sum", "all_to_all");
  writer.set_wire(wire_format::binary16);
  writer.set_lost_on_wire(std::nullopt);
  const auto& found = writer.get();
  CHECK_FALSE(found.lost_on_wire());
  CHECK(to_text(found).find("not counted") != std::string::npos);
  CHECK(to_json(found, 0).find("\"wire_overflowed\":null,\"wire_vanished\":null") != std::string::npos);
  CHECK(to_csv(found, 0).find(",,\n") != std::string::npos);
}

TEST_CASE("the counts as text, JSON and CSV") {
  const std::vector<std::vector<float>> gradients{{1e5f, 1e-9f, 1e-9f, 1}, {0, 0, 0, 1}};
  const auto ranks = reduce_on_threads<float>(gradients, segments{4}, rules::sum{}, schedules::recursive_doubling{},
                                              rounded(wire_format::binary16));
  const auto holds = [](const std::string& text, std::string_view part) { return text.find(part) != text.npos; };
  const auto& lossy = ranks[0].found;
  CHECK(holds(to_text(lossy), "as binary16; overflowed on their way: 1; vanished on their way: 2\n"));
  CHECK(holds(to_json(lossy, 0), "\"binary16\",\"wire_overflowed\":1,\"wire_vanished\":2,"));
  CHECK(holds(to_csv(lossy, 0), ",1,2\n"));
  CHECK(holds(to_json(ranks[1].found, 0), "\"binary16\",\"wire_overflowed\":0,\"wire_vanished\":0,"));
}

TEST_CASE("policies look at the gradients, not at what becomes of them on their way") {
  for (const auto policy : {nonfinite_policy::propagate, nonfinite_policy::exclude, nonfinite_policy::raise}) {
    const options choices{.nonfinite = policy, .wire = wire_format::binary16};
    const auto ranks = reduce_on_threads<float>({{1e5f, 1}, {1, 1}}, segments{1, 1}, rules::adasum{},
                                                schedules::recursive_doubling{}, choices);
    for (int rank : {0, 1}) CHECK(ranks[rank].found.lost_on_wire() == wire_losses{rank == 0 ? 1u : 0u, 0});
    for (const auto& rank : ranks) {
      CHECK((std::isnan(rank.gradient[0]) && rank.gradient[1] == 1));
      CHECK(rank.found.excluded().empty());
      CHECK(rank.found.nonfinite() == std::vector{nonfinite_input{0, 0}});
    }
  }
}

}  // namespace test_of_lost_on_wire
