// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <adasum/adasum.hpp>

#include "disagreements.hpp"
#include "random_gradients.hpp"
#include "thread_reduction.hpp"

/// Buckets under rules that weigh the whole model, against a plan for the whole gradient.
namespace adasum::test {

inline const std::vector<std::size_t> model_lengths{40, 3, 0, 70, 200, 9, 9, 31, 1};
inline const segments model(model_lengths);
inline constexpr std::size_t bucket_bytes = 100 * sizeof(double);

/// One pass for each element: the gradients of all ranks.
using passes = std::vector<std::vector<std::vector<double>>>;

inline passes random_passes(int size, std::uint64_t count) {
  passes inputs;
  for (std::uint64_t p = 0; p < count; ++p)
    inputs.push_back(random_gradients<double>(static_cast<std::size_t>(size), model.total(), 70 + p));
  return inputs;
}

/// The parameters in an order of this seed's.
inline std::vector<std::size_t> shuffled_parameters(std::uint64_t seed) {
  uniform_numbers random(seed);
  std::vector<std::size_t> order(model_lengths.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (auto i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

/// Parameter i of a flat gradient.
inline std::span<double> parameter_of(std::vector<double>& whole, std::size_t i) {
  return std::span(whole).subspan(model.offset(i), model.length(i));
}

/// What a blocking plan for the whole gradient, in its own buffer, makes of each pass on one rank.
template <class Rule, class Schedule>
std::vector<reduced<double>> reduced_whole(const thread_communicator& comm, const passes& inputs, const Rule& rule,
                                           const Schedule& order, const options& choices) {
  std::vector<reduced<double>> results;
  auto plan = plan_allreduce<double>(serial_space{}, comm, model, rule, order, choices);
  const auto memory = plan.buffer();
  for (const auto& pass : inputs) {
    std::ranges::copy(pass[static_cast<std::size_t>(comm.rank())], memory.begin());
    const auto& found = plan();
    results.push_back({{memory.begin(), memory.end()}, found});
  }
  return results;
}

/// The same in buckets, marked ready in another order on each rank: in place, or from memory of the caller's.
template <class Rule, class Schedule>
std::vector<reduced<double>> reduced_in_buckets(const thread_communicator& comm, const passes& inputs, const Rule& rule,
                                                const Schedule& order, const options& choices) {
  std::vector<reduced<double>> results;
  auto buckets = plan_bucketed<double>(serial_space{}, comm, model, bucket_bytes, rule, order, choices);
  for (std::size_t p = 0; p < inputs.size(); ++p) {
    const auto r = static_cast<std::size_t>(comm.rank());
    auto mine = inputs[p][r];
    for (const auto i : shuffled_parameters(100 * p + r)) {
      if (p % 2 == 0) {
        buckets.ready(i, parameter_of(mine, i));
      } else {
        std::ranges::copy(parameter_of(mine, i), buckets.gradient(i).begin());
        buckets.ready(i);
      }
    }
    if (p % 3 == 0)
      while (!buckets.test()) std::this_thread::yield();
    const auto reports = buckets.wait();
    REQUIRE(reports.size() == 1);
    if (p % 2 == 1)
      for (std::size_t i = 0; i < model.size(); ++i)
        std::ranges::copy(buckets.gradient(i), parameter_of(mine, i).begin());
    results.push_back({std::move(mine), *reports[0]});
  }
  return results;
}

inline void check_same_report(const report& found, const report& expected) {
  REQUIRE(found.segments() == expected.segments());
  REQUIRE(found.contributions() == expected.contributions());
  CHECK(found.rule() == expected.rule());
  CHECK(found.schedule() == expected.schedule());
  CHECK(found.excluded() == expected.excluded());
  CHECK(found.nonfinite() == expected.nonfinite());
  CHECK(found.fallbacks() == expected.fallbacks());
  CHECK(found.recombined_segments() == expected.recombined_segments());
  CHECK(found.bytes_sent() == expected.bytes_sent());
  std::vector<double> numbers, expected_numbers;
  for (const auto& [from, to] : {std::pair(&found, &numbers), std::pair(&expected, &expected_numbers)})
    for (std::size_t k = 0; k < from->segments(); ++k) {
      to->push_back(from->result_norm(k));
      for (std::size_t i = 0; i < from->contributions(); ++i) {
        to->push_back(from->norm(i, k));
        to->push_back(from->weight(i, k));
      }
    }
  CHECK(same_bits(numbers, expected_numbers));
}

template <class Rule, class Schedule>
void check_same_as_whole(const passes& inputs, const Rule& rule, const Schedule& order,
                         const options& choices = unchecked) {
  const auto size = static_cast<int>(inputs.front().size());
  CAPTURE(size);
  CAPTURE(std::string(Rule::name));
  const auto both = results_of(on_ranks(size, [&](const thread_communicator& comm) {
    return std::pair(reduced_whole(comm, inputs, rule, order, choices),
                     reduced_in_buckets(comm, inputs, rule, order, choices));
  }));
  for (const auto& [whole, found] : both)
    for (std::size_t p = 0; p < inputs.size(); ++p) {
      CAPTURE(p);
      CHECK(same_bits(found[p].gradient, whole[p].gradient));
      CHECK(same_bits(found[p].gradient, both.front().second[p].gradient));
      check_same_report(found[p].found, whole[p].found);
    }
}

}  // namespace adasum::test
