// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "core/config.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "core/error.hpp"
#include "core/input_checks.hpp"
#include "detail/gradient_arguments.hpp"
#include "plan.hpp"

namespace adasum {

namespace detail {

template <class Plan>
inline constexpr bool is_allreduce_plan = false;
template <class T, class Space, class Comm, class Rule, class Schedule>
inline constexpr bool is_allreduce_plan<allreduce_plan<T, Space, Comm, Rule, Schedule>> = true;

/// @param start  the weights before; @param now  after the optimizer's step
template <class Plan, class T>
const report& reduce_deltas(Plan& plan, std::span<const T> start, std::span<T> now) {
  constexpr auto call = "adasum::delta_allreduce";
  if (plan.is_in_flight()) throw bad_input({call, ": the plan's reduction is in flight; call wait() first"});
  try {
    if (start.size() != now.size() || start.size() != plan.length())
      throw bad_input({call, ": ", counted(start.size(), "weight"), " before the step, ", now.size(),
                       " after it, and the plan is for ", plan.length()});
    if (start.data() == now.data() && !start.empty())
      throw bad_input({call, ": the weights before and after are the same array"});
    require_same_or_apart(start, std::span<const T>(now), [] { return std::string("the weights before"); }, call);
  } catch (const bad_input& problem) {
    plan.refuse(problem.what());
  }

  const std::array<std::size_t, 2> offsets{0, now.size()};
  const auto window = whole(segments_view{offsets});
  const std::array<const T*, 2> vectors{now.data(), start.data()};
  const auto mix = [&](double of_start) {
    const std::array<double, 2> factors{1, of_start};
    plan.space().mix(window, std::span<const T* const>(vectors), factors.data(), now.data());
    plan.space().fence();
  };
  try {
    mix(-1);
  } catch (...) {
    try {
      plan.refuse(joined({call, ": the execution space failed"}));  // the others must not wait
    } catch (const error&) {
    }
    throw;
  }
  try {
    const auto& found = plan(now);
    mix(+1);
    return found;
  } catch (const agreement_error&) {  // the steps are as they were
    mix(+1);
    throw;
  } catch (const bad_input&) {  // another reduction is in flight
    mix(+1);
    throw;
  } catch (const nonfinite_error&) {
    mix(+1);
    throw;
  }
}

}  // namespace detail

/// For optimizers with state: every rank takes its own optimizer step from the same weights, and the steps are combined
/// instead of the gradients:
///
///     weights ← before + allreduce(weights − before)
///
/// All ranks must hold the same `before`; they end with bitwise identical weights, and each keeps its own optimizer state.
/// The call works in the memory of `weights`. It only reads `before`, which may lie in plan.buffer(), so that no further copy
/// is needed:
///
///     std::ranges::copy(weights, plan.buffer().begin());
///     optimizer.step();                                    // changes weights
///     report r = adasum::delta_allreduce(plan, plan.buffer(), weights);
///
/// Maleki et al., MLSys 2021, section 3 (optimizers with state). Collective; it blocks and throws as a run of the plan does.
/// If the plan throws an agreement_error or a nonfinite_error, `before` has been subtracted from the weights and added again:
/// each weight is what it was, except for two roundings.
/// @throws bad_input  `before` and `weights` differ in length or overlap; the other ranks get a communication_error. With
///                    options::check_agreement, all ranks get an agreement_error instead
template <class Plan, class Before, class Weights>
const report& delta_allreduce(Plan& plan, Before&& before, Weights&& weights) {
  constexpr bool gives_all = detail::is_allreduce_plan<Plan>;
  static_assert(gives_all, "write a plan of plan_allreduce: other plans do not give every rank the whole combined step");
  if constexpr (gives_all && detail::is_gradient_argument<Before>() && detail::is_output_argument<Weights>())
    if constexpr (detail::have_elements_of<element_t<Weights>, Before>())
      return detail::reduce_deltas(plan, detail::const_span_of(before), detail::span_of(weights));
  return plan.last_report();  // not reached: one of these has refused an argument
}

}  // namespace adasum
