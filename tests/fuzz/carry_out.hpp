// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <adasum/adasum.hpp>

#include "../support/bits.hpp"
#include "../support/eigen_scalars.hpp"
#include "../support/scalars.hpp"
#include "input.hpp"
#include "order.hpp"
#include "ranks.hpp"

namespace adasum::fuzz {

#ifdef ADASUM_TEST_EIGEN
using half = Eigen::half;
#else
using half = float;
#endif

/// One rank's share of a call.
template <scalar T, class Space>
class rank_of_call {
 public:
  rank_of_call(const Space& exec, const order& what, const thread_communicator& comm, std::vector<T> gradient)
      : exec_(exec), what_(what), comm_(comm), gradient_(std::move(gradient)), valid_{0, gradient_.size()} {}

  /// @throws error
  outcome run() {
    const auto& to = what_.choices;
    if (what_.what == call::buckets) {
      fill_buckets();
    } else {
      const auto segs = segments_of(gradient_.size(), what_.lengths);
      const parts dealt(what_.parts.begin(), what_.parts.end());
      const bool asks_much = segs.total() > 1'000'000;  // sanitizers end a program that asks for too much memory
      switch (what_.what) {
        case call::allreduce: adasum_allreduce(exec_, comm_, gradient_, segs, to); break;
        case call::reduce_scatter:
          if (what_.parts.empty())
            adasum_reduce_scatter(exec_, comm_, gradient_, segs, to);
          else
            adasum_reduce_scatter(exec_, comm_, gradient_, segs, dealt, to);
          valid_ = part_of(dealt);
          break;
        case call::plan:
          if (asks_much) return {};
          run_plan(plan_allreduce<T>(exec_, comm_, segs, to));
          break;
        case call::plan_reduce_scatter: {
          if (asks_much) return {};
          auto plan = what_.parts.empty() ? adasum::plan_reduce_scatter<T>(exec_, comm_, segs, to)
                                          : adasum::plan_reduce_scatter<T>(exec_, comm_, segs, dealt, to);
          valid_ = plan.part();
          require(what_.parts.empty() || valid_ == part_of(dealt), "the plan's part is the one that was asked for");
          run_plan(std::move(plan));
          break;
        }
        case call::delta:
          if (asks_much) return {};
          step_from_weights(segs);
          break;
        default:
          if constexpr (std::is_same_v<T, float> && std::is_same_v<Space, serial_space>) {
            if (what_.what == call::halving)
              by_halving(segs);
            else if (what_.what == call::by_rule)
              by_rule(segs);
            else
              by_node(segs);
          }
      }
    }
    outcome found{true, {}, valid_};
    for (const auto x : gradient_) found.values.push_back(test::to_double(x));
    return found;
  }

 private:
  index_range part_of(const parts& dealt) const {
    const auto rank = static_cast<std::size_t>(comm_.rank());
    return what_.parts.empty() ? part_of_rank(gradient_.size(), comm_.size(), comm_.rank()) : dealt.of_rank(rank);
  }

  void by_halving(const segments& segs) {
    const schedules::recursive_halving halving{what_.radix};
    if (what_.mine)
      adasum_allreduce(exec_, comm_, gradient_, segs, halving, *what_.mine, what_.choices);
    else
      adasum_allreduce(exec_, comm_, gradient_, segs, halving, what_.choices);
  }

  void by_rule(const segments& segs) {
    const auto reduce = [&](auto rule) {
      if (what_.schedule == 0)
        combine_allreduce(exec_, comm_, gradient_, segs, rule, what_.choices);
      else if (what_.schedule == 1)
        combine_allreduce(exec_, comm_, gradient_, segs, rule, schedules::all_to_all{}, what_.choices);
      else if constexpr (tree_rule<decltype(rule)>)
        combine_allreduce(exec_, comm_, gradient_, segs, rule, schedules::recursive_doubling{what_.radix},
                          what_.choices);
      else
        combine_allreduce(exec_, comm_, gradient_, segs, rule, what_.choices);
    };
    switch (what_.rule) {
      case 0: return reduce(rules::mean{});
      case 1: return reduce(rules::sum{});
      case 2: return reduce(rules::adacons{.momentum = what_.parameter, .epsilon = what_.parameter});
      case 3: return reduce(rules::geometric_median{.smoothing = what_.parameter, .iterations = 9});
      default: return reduce(rules::multi_krum{.byzantine = what_.radix, .selected = what_.length});
    }
  }

  void by_node(const segments& segs) {
    if (what_.inner_is_mean)
      adasum_allreduce(exec_, comm_, gradient_, segs,
                       schedules::hierarchical{what_.nodes, rules::mean{}, schedules::automatic{}, what_.radix},
                       what_.choices);
    else
      adasum_allreduce(exec_, comm_, gradient_, segs,
                       schedules::hierarchical{what_.nodes, rules::adasum{}, schedules::automatic{}, what_.radix},
                       what_.choices);
  }

  /// Twice: the second run, which blocks, gives the bits of the first. Then once in the plan's own memory, or not.
  template <class Plan>
  void run_plan(Plan plan) {
    auto again = gradient_, owned = gradient_;
    plan.start(gradient_);
    plan.test();
    plan.wait();
    plan(again);
    const auto result = [&](const std::vector<T>& all) {
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(valid_.begin);
      return std::vector<T>(begin, begin + static_cast<std::ptrdiff_t>(valid_.size()));
    };
    const bool has_nan = result(gradient_) != result(gradient_);  // on this rank: others go on alike
    require(has_nan || test::same_bits(result(gradient_), result(again)),
            "a plan's second run gives the bits of the first");
    if (!what_.in_buffer) return;
    const auto own = plan.buffer();
    std::ranges::copy(owned, own.begin());
    plan();
    gradient_.assign(own.begin(), own.end());
  }

  /// Parameters of the segments' lengths become ready one by one; the result lands in the caller's gradient.
  void fill_buckets() {
    auto lengths = what_.lengths;
    if (lengths.empty()) lengths.push_back(static_cast<long long>(gradient_.size()));
    const segments cut(lengths.begin(), lengths.end());
    if (cut.total() > 1'000'000) throw bad_input("more memory than a sanitizer allows");
    auto buckets = plan_bucketed<T>(exec_, comm_, lengths, what_.bucket_bytes, what_.choices);
    if (cut.total() != gradient_.size()) gradient_.resize(cut.total());
    valid_ = {0, gradient_.size()};
    const segments_view ranges = cut;
    const auto count = cut.size();
    for (std::size_t k = 0; k + (what_.forgets_one ? 1 : 0) < count; ++k) {
      const auto i = what_.backwards ? count - 1 - k : k;
      const auto range = ranges.range(i);
      const auto callers = std::span<T>(gradient_).subspan(range.begin, range.size());
      if (what_.in_buffer) {
        std::ranges::copy(callers, buckets.gradient(i).begin());
        buckets.ready(i);
      } else {
        buckets.ready(i, callers);
      }
      if (what_.repeats_one) buckets.ready(i);
    }
    buckets.test();
    buckets.wait();
    if (what_.in_buffer)
      for (std::size_t i = 0; i < count; ++i)
        std::ranges::copy(buckets.gradient(i), gradient_.begin() + static_cast<std::ptrdiff_t>(ranges.range(i).begin));
  }

  /// The gradient is a step from weights that are 2.
  void step_from_weights(const segments& segs) {
    auto plan = plan_allreduce<T>(exec_, comm_, segs, what_.choices);
    std::vector<T> before(gradient_.size(), test::from_double<T>(2)), weights = before;
    for (std::size_t x = 0; x < weights.size(); ++x)
      weights[x] = test::from_double<T>(2 + test::to_double(gradient_[x]));
    if (what_.in_buffer && plan.length() == before.size()) {
      std::ranges::copy(before, plan.buffer().begin());
      delta_allreduce(plan, plan.buffer(), weights);
    } else {
      delta_allreduce(plan, before, weights);
    }
    for (std::size_t x = 0; x < weights.size(); ++x)
      gradient_[x] = test::from_double<T>(test::to_double(weights[x]) - 2);
  }

  const Space& exec_;
  const order& what_;
  const thread_communicator& comm_;
  std::vector<T> gradient_;
  index_range valid_;
};

/// @return nothing but that there is no result where the library throws an error of its own
template <scalar T>
outcome carry_out_as(const order& what, const thread_communicator& comm, const std::vector<double>& numbers) {
  try {
    const auto gradient = test::from_doubles<T>(numbers);
    if constexpr (std::is_same_v<T, float>)
      if (what.threads > 0) {
        const threads_space exec(what.threads);
        return rank_of_call<T, threads_space>(exec, what, comm, gradient).run();
      }
    const serial_space exec;
    return rank_of_call<T, serial_space>(exec, what, comm, gradient).run();
  } catch (const error&) {
    return {};
  }
}

}  // namespace adasum::fuzz
