// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
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

/// One pass for each element: the gradients of all ranks.
template <class T>
using passes = std::vector<std::vector<std::vector<T>>>;

/// Whole numbers of at most 8 times a power of two: all sums of their products are exact, in whatever order they are added.
template <class T>
std::vector<std::vector<T>> exact_gradients(int size, std::uint64_t seed, T scale = 1) {
  uniform_numbers random(seed);
  std::vector<std::vector<T>> gradients(static_cast<std::size_t>(size), std::vector<T>(model.total()));
  for (auto& gradient : gradients)
    for (auto& x : gradient) x = scale * (static_cast<T>(random.below(17)) - T{8});
  return gradients;
}

template <class T>
passes<T> exact_passes(int size, std::size_t count, T scale = 1) {
  passes<T> inputs;
  for (std::uint64_t p = 0; p < count; ++p) inputs.push_back(exact_gradients<T>(size, 10 * p + 1, scale));
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
template <class T>
std::span<T> parameter_of(std::vector<T>& whole, std::size_t i) {
  return std::span(whole).subspan(model.offset(i), model.length(i));
}

/// What a plan for the whole gradient, in its own buffer, makes of each pass on one rank.
template <class T, class Rule, class Schedule>
std::vector<reduced<T>> reduced_whole(const thread_communicator& comm, const passes<T>& inputs, const Rule& rule,
                                      const Schedule& order, const options& choices) {
  std::vector<reduced<T>> results;
  auto plan = plan_allreduce<T>(serial_space{}, comm, model, rule, order, choices);
  const auto memory = plan.buffer();
  for (const auto& pass : inputs) {
    std::ranges::copy(pass[static_cast<std::size_t>(comm.rank())], memory.begin());
    const auto& found = plan();
    results.push_back({{memory.begin(), memory.end()}, found});
  }
  return results;
}

/// The same in buckets, marked ready in another order on each rank: in place, or from memory of the caller's.
template <class T, class Rule, class Schedule>
std::vector<reduced<T>> reduced_in_buckets(const thread_communicator& comm, const passes<T>& inputs, const Rule& rule,
                                           const Schedule& order, const options& choices, std::size_t bucket_bytes) {
  std::vector<reduced<T>> results;
  auto buckets = plan_bucketed<T>(serial_space{}, comm, model, bucket_bytes, rule, order, choices);
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

/// The same report, but for how many bytes were sent. Under a rule that is applied along the tree, the norm of a result that
/// was combined vector by vector is measured from its rounded elements, and the order of that sum depends on the buckets.
template <class Rule>
void check_same_report(const report& found, const report& expected) {
  REQUIRE(found.segments() == expected.segments());
  REQUIRE(found.contributions() == expected.contributions());
  CHECK(found.rule() == expected.rule());
  CHECK(found.schedule() == expected.schedule());
  CHECK(found.excluded() == expected.excluded());
  CHECK(found.fallbacks() == expected.fallbacks());
  CHECK(found.recombined_segments() == expected.recombined_segments());
  const double allowed = tree_rule<Rule> && expected.recombined_segments() > 0 ? 0x1p-50 : 0;
  std::vector<double> numbers, expected_numbers;
  for (std::size_t k = 0; k < expected.segments(); ++k) {
    const double norm = found.result_norm(k), right = expected.result_norm(k);
    CHECK((same_bits(std::vector{norm}, std::vector{right}) || std::abs(norm - right) <= allowed * right));
    for (const auto& [from, to] : {std::pair(&found, &numbers), std::pair(&expected, &expected_numbers)})
      for (std::size_t i = 0; i < from->contributions(); ++i) {
        to->push_back(from->norm(i, k));
        to->push_back(from->weight(i, k));
      }
  }
  CHECK(same_bits(numbers, expected_numbers));
}

/// Buckets of several sizes give the bits of the whole, pass after pass, on all ranks.
template <class T, class Rule, class Schedule>
void check_same_as_whole(const passes<T>& inputs, const Rule& rule, const Schedule& order,
                         const options& choices = unchecked) {
  const auto size = static_cast<int>(inputs.front().size());
  const auto whole = results_of(on_ranks(
      size, [&](const thread_communicator& comm) { return reduced_whole(comm, inputs, rule, order, choices); }));
  for (const std::size_t elements : {0u, 15u, 100u, 250u, 100000u}) {
    CAPTURE(size);
    CAPTURE(elements);
    CAPTURE(std::string(Rule::name));
    const auto found = results_of(on_ranks(size, [&](const thread_communicator& comm) {
      return reduced_in_buckets(comm, inputs, rule, order, choices, elements * sizeof(T));
    }));
    for (std::size_t r = 0; r < found.size(); ++r)
      for (std::size_t p = 0; p < inputs.size(); ++p) {
        CAPTURE(r);
        CAPTURE(p);
        CHECK(same_bits(found[r][p].gradient, whole[r][p].gradient));
        check_same_report<Rule>(found[r][p].found, whole[r][p].found);
      }
  }
}

/// In buckets, a rule gives the gradients `all` the weights that it gives `own` in one process, from differences alone.
template <class Rule, class Schedule>
void check_chosen_by_differences(const passes<double>& own, const passes<double>& all, const Rule& rule,
                                 const Schedule& order) {
  const auto size = static_cast<int>(own.front().size());
  const auto found = results_of(on_ranks(size, [&](const thread_communicator& comm) {
    return reduced_in_buckets(comm, all, rule, order, unchecked, 100 * sizeof(double));
  }));
  CAPTURE(std::string(Rule::name));
  for (std::size_t p = 0; p < own.size(); ++p) {
    std::vector<double> out(model.total());
    const auto expected = combine(serial_space{}, own[p], out, rule, model);
    for (const auto& rank : found) {
      CHECK(rank[p].found.recombined_segments() == model.size());
      CHECK(same_bits(rank[p].gradient, found.front()[p].gradient));
      for (std::size_t i = 0; i < own[p].size(); ++i)
        for (std::size_t k = 0; k < model.size(); ++k) CHECK(rank[p].found.weight(i, k) == expected.weight(i, k));
    }
  }
}

/// With random gradients: all ranks the same bits, and those of the whole up to the roundings of inner products. Summed in
/// any order, |error of gᵢ·gⱼ| ≤ N 2⁻⁵³ ‖gᵢ‖‖gⱼ‖ for N elements. The Gram matrix of so many random elements is nearly
/// diagonal (condition below 4), so that a weight changes by at most 4n times as much, relative to the largest; and each
/// element is rounded n + 1 times.
template <class Rule>
void check_close_to_whole(const passes<double>& inputs, const Rule& rule) {
  const auto size = static_cast<int>(inputs.front().size());
  const schedules::all_to_all order{};
  const auto both = results_of(on_ranks(size, [&](const thread_communicator& comm) {
    return std::pair(reduced_whole(comm, inputs, rule, order, unchecked),
                     reduced_in_buckets(comm, inputs, rule, order, unchecked, 100 * sizeof(double)));
  }));
  const auto& [whole, found] = both.front();
  CAPTURE(size);
  CAPTURE(std::string(Rule::name));
  for (std::size_t p = 0; p < inputs.size(); ++p) {
    for (const auto& rank : both) CHECK(same_bits(rank.second[p].gradient, found[p].gradient));
    double largest = 0;
    for (std::size_t i = 0; i < inputs[p].size(); ++i)
      largest = std::max(largest, std::abs(whole[p].found.weight(i, 0)));
    const auto n = static_cast<double>(size), count = static_cast<double>(model.total());
    for (std::size_t x = 0; x < model.total(); ++x) {
      double terms = 0;
      for (const auto& gradient : inputs[p]) terms += largest * std::abs(gradient[x]);
      // From pass to pass, a rule's state adds them up.
      const double bound = static_cast<double>(p + 1) * (2 * 4 * n * count + n + 1) * 0x1p-53 * terms;
      CHECK(std::abs(found[p].gradient[x] - whole[p].gradient[x]) <= bound);
    }
  }
}
template <class Rule>
void check_close_to_whole(int size, const Rule& rule) {
  passes<double> inputs;
  for (std::uint64_t p = 0; p < 4; ++p)
    inputs.push_back(random_gradients<double>(static_cast<std::size_t>(size), model.total(), 70 + p));
  check_close_to_whole(inputs, rule);
}

/// What the ranks of a pass saw: how it ended, and whether the caller's gradients changed.
struct ended_pass {
  ending end;
  bool unchanged;
};

/// The mean of the whole model; throws on a rank that is told to.
struct throwing_rule {
  static constexpr std::string_view name = "throwing";
  bool* throws;
  bool whole_model() const { return true; }
  void operator()(adasum::gram_view gram, std::span<double> weights) const {
    if (std::exchange(*throws, false)) throw std::runtime_error("the rule fails");
    std::ranges::fill(weights, 1.0 / static_cast<double>(gram.size()));
  }
};

/// The same of norms and row sums: among several stages it runs by sums of vectors.
struct throwing_row_sum_rule {
  static constexpr std::string_view name = "throwing";
  bool* throws;
  bool whole_model() const { return true; }
  void operator()(adasum::row_sums_view sums, std::span<double> weights) const {
    if (std::exchange(*throws, false)) throw std::runtime_error("the rule fails");
    std::ranges::fill(weights, 1.0 / static_cast<double>(sums.size()));
  }
};

/// One pass in memory of the caller's. @param missing  a parameter that is not marked
template <class Buckets>
ended_pass pass_of(Buckets& buckets, std::vector<double> mine, std::uint64_t seed, std::size_t missing,
                   bool leaves = false) {
  const auto before = mine;
  const auto end = end_of(std::vector<double>{}, [&](auto&) {
    for (const auto i : shuffled_parameters(seed))
      if (i != missing) buckets.ready(i, parameter_of(mine, i));
    if (!leaves) buckets.wait();
  });
  return {end, same_bits(mine, before)};
}
inline constexpr std::size_t none = 1000;

}  // namespace adasum::test
