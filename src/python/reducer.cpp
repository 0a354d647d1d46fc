// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "reducer.hpp"

#include <algorithm>
#include <exception>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include <adasum/core/error.hpp>
#include <adasum/detail/collective/joint_set_up.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/report_text.hpp>
#include <adasum/torch_tensor.hpp>

#include "../c/arguments.hpp"

namespace adasum::python {
namespace {

constexpr const char* call = "adasum.torch";

int type_of(const at::Tensor& tensor) {
  return visit_elements(tensor, []<class T>(std::span<T>) { return static_cast<int>(format_of<T>); });
}

/// @return what is wrong with it; empty if nothing is
std::string problem_of(const at::Tensor& tensor, const std::vector<std::size_t>& lengths) {
  try {
    if (!tensor.device().is_cpu())
      return "the tensor is on " + tensor.device().str() +
             "; a process group of this kind sends tensors of the CPU alone";
    visit_elements(tensor, [](auto) {});
    const auto total = std::accumulate(lengths.begin(), lengths.end(), std::size_t{0});
    if (total != static_cast<std::size_t>(tensor.numel()))
      return "the tensor has " + std::to_string(tensor.numel()) + " elements, its segments " + std::to_string(total);
  } catch (const bad_input& wrong) {
    return wrong.what();
  }
  return {};
}

}  // namespace

reducer::reducer(std::shared_ptr<group_worker> worker, const std::string& rule, const std::string& options,
                 std::optional<shard> part, const std::string& problem)
    : worker_(std::move(worker)), options_(options) {
  worker_->carry_out([&] {
    const serial_space space;
    const auto& comm = worker_->comm();
    adasum::detail::joint_set_up(call, space, comm, c::asks_for_agreement(options_.c_str())).run([&](auto& others) {
      if (!problem.empty()) throw bad_input(problem);
      asked_ = c::rule_and_options_of(
          {.call = call, .count = 0, .type = 0, .rule = rule.c_str(), .options = options_.c_str()});
      asked_.part = std::move(part);
      adasum::detail::call_signature mine;
      mine.set(mine.activity, call);
      adasum::detail::agreement_memory memory(comm.size());
      const std::size_t none[] = {0};
      others.meet(mine, segments_view{none}, memory);
    });
  });
}

reducer::~reducer() {
  try {
    worker_->carry_out([this] { plans_.clear(); });
  } catch (...) {  // the interpreter has ended meanwhile; another thread may be running one of them
    new auto(std::move(plans_));
  }
}

reducer::future reducer::reduce(const at::Tensor& tensor, std::vector<std::size_t> lengths, c10::IValue result,
                                std::string problem) {
  const auto one = std::make_shared<job>();
  one->tensor = tensor;
  one->lengths = std::move(lengths);
  one->result = std::move(result);
  one->done = c10::make_intrusive<c10::ivalue::Future>(c10::PyObjectType::get());
  one->problem = problem.empty() ? problem_of(one->tensor, one->lengths) : std::move(problem);
  {
    const std::lock_guard lock(mutex_);
    one->steps_are_told = steps_are_told_;
    one->step = steps_are_told_ ? step_ : ++step_;
  }
  auto done = one->done;
  worker_->submit(
      [this, one] {
        try {
          carry_out(*one);
        } catch (...) {
          one->failure = std::current_exception();
        }
      },
      [one] {
        if (one->failure)
          one->done->setError(one->failure);
        else
          one->done->markCompleted(std::move(one->result));
      });
  return done;
}

bool reducer::is_whole_model() const {
  return std::visit(
      [](const auto& rule) {
        if constexpr (requires { rule.whole_model(); })
          return rule.whole_model();
        else
          return false;
      },
      asked_.rule);
}

void reducer::begin_step() {
  const std::lock_guard lock(mutex_);
  steps_are_told_ = true;
  ++step_;
}

std::vector<std::string> reducer::reports() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < report_count_; ++i) texts.push_back(to_json(reports_[i], step_of_reports_));
  return texts;
}

void reducer::carry_out(job& one) {
  if (std::exchange(step_of_order_, one.step) != one.step) reductions_ = 0;
  drop_unused_plans(one);
  if (!one.problem.empty()) refuse(one);
  const auto& found = next_plan(one).run(one.tensor.data_ptr(), static_cast<std::size_t>(one.tensor.numel()));
  const std::lock_guard lock(mutex_);
  if (std::exchange(step_of_reports_, one.step) != one.step) report_count_ = 0;
  if (report_count_ == reports_.size()) reports_.emplace_back();
  reports_[report_count_++] = found;
}

/// The other ranks are about to run the plan for these lengths, or to make it. Throws.
void reducer::refuse(const job& one) {
  const auto problem = std::string(call) + ": " + one.problem;
  if (auto* const kept = expected_plans(one)) {
    const auto place = next_place(*kept, one.step);
    if (place < kept->plans.size() && kept->plans[place]) kept->plans[place]->refuse(problem, nullptr);
  }
  c::prepare_among_ranks(worker_->comm(), {.call = call, .count = 0, .type = 0, .options = options_.c_str()},
                         [&] { throw bad_input(problem); });
}

/// Those of its segments; if they are not known, those that came at this point of the step before. Null if there are none.
reducer::kept_plans* reducer::expected_plans(const job& one) {
  if (one.lengths.empty()) return reductions_ < order_.size() ? order_[reductions_] : nullptr;
  const auto found = std::ranges::find_if(plans_, [&](const auto& kept) { return kept.first.lengths == one.lengths; });
  return found == plans_.end() ? nullptr : &found->second;
}

/// Counts this reduction. @return how many of these plans were used before in this step
std::size_t reducer::next_place(kept_plans& kept, std::int64_t step) {
  if (std::exchange(kept.step, step) != step) kept.used = 0;
  order_.resize(std::max(order_.size(), reductions_ + 1));
  order_[reductions_++] = &kept;
  return kept.used++;
}

c::any_plan& reducer::next_plan(const job& one) {
  const int type = type_of(one.tensor);
  auto& kept = plans_[plan_key{.type = type, .lengths = one.lengths}];
  const auto place = next_place(kept, one.step);
  if (place >= kept.plans.size()) kept.plans.resize(place + 1);
  if (!kept.plans[place]) {
    auto asked = asked_;
    asked.cut = segments(std::span<const std::size_t>(one.lengths));
    auto made = c::calls_of(type, call).empty_plan(asked);
    made->make(worker_->comm(), asked);
    kept.plans[place] = std::move(made);
  }
  return *kept.plans[place];
}

/// All ranks drop the same ones, as they do the same in each step.
void reducer::drop_unused_plans(const job& one) {
  const std::int64_t steps_unused = one.steps_are_told ? 10 : 1000;
  const auto is_unused = [&](const kept_plans& kept) { return one.step - kept.step > steps_unused; };
  std::erase_if(order_, [&](const kept_plans* kept) { return is_unused(*kept); });
  std::erase_if(plans_, [&](const auto& kept) { return is_unused(kept.second); });
}

}  // namespace adasum::python
