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

std::size_t sum_of(const std::vector<std::size_t>& lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), std::size_t{0});
}

/// @return what is wrong with it; empty if nothing is
std::string problem_of(const at::Tensor& tensor, const std::vector<std::size_t>& lengths) {
  try {
    if (!tensor.device().is_cpu())
      return "the tensor is on " + tensor.device().str() +
             "; this process group sends CPU tensors only";
    visit_elements(tensor, [](auto) {});
    const auto total = sum_of(lengths);
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

void reducer::destroy(reducer* one) {
  const auto worker = one->worker_;
  try {
    if (worker->is_this_thread())
      worker->submit([one] { delete one; }, {});
    else
      worker->carry_out([one] { delete one; });
  } catch (const std::exception&) {  // the interpreter has ended meanwhile: it is left to the end of the process
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
  if (std::exchange(step_of_place_, one.step) != one.step) place_ = 0;
  one.place = place_++;
  drop_unused_plans(one);
  if (!one.problem.empty()) refuse(one);
  const auto& found = plan_for(one).plan->run(one.tensor.data_ptr(), static_cast<std::size_t>(one.tensor.numel()));
  const std::lock_guard lock(mutex_);
  if (std::exchange(step_of_reports_, one.step) != one.step) report_count_ = 0;
  if (report_count_ == reports_.size()) reports_.emplace_back();
  reports_[report_count_++] = found;
}

/// The other ranks are about to run the plan for these lengths, or to make it. Throws.
void reducer::refuse(const job& one) {
  const auto problem = std::string(call) + ": " + one.problem;
  if (auto* const kept = expected_plan(one)) {
    kept->step = one.step;
    kept->plan->refuse(problem, nullptr);
  }
  c::prepare_among_ranks(worker_->comm(), {.call = call, .count = 0, .type = 0, .options = options_.c_str()},
                         [&] { throw bad_input(problem); });
}

/// That for its lengths; if these are what is wrong, that which was used last at this place. Null if there is none.
reducer::kept_plan* reducer::expected_plan(const job& one) {
  kept_plan* last = nullptr;
  for (auto& [key, kept] : plans_) {
    if (key.place != one.place) continue;
    if (key.lengths == one.lengths) return &kept;
    if (!last || kept.step > last->step) last = &kept;
  }
  const bool lengths_are_right =
      one.tensor.defined() && sum_of(one.lengths) == static_cast<std::size_t>(one.tensor.numel());
  return lengths_are_right ? nullptr : last;
}

reducer::kept_plan& reducer::plan_for(const job& one) {
  const int type = type_of(one.tensor);
  plan_key key{.place = one.place, .type = type, .lengths = one.lengths};
  auto found = plans_.find(key);
  if (found == plans_.end()) {
    kept_plan made;
    auto asked = asked_;
    asked.cut = segments(std::span<const std::size_t>(one.lengths));
    made.plan = c::calls_of(type, call).empty_plan(asked);
    made.plan->make(worker_->comm(), asked);
    found = plans_.emplace(std::move(key), std::move(made)).first;
  }
  found->second.step = one.step;
  return found->second;
}

/// All ranks drop the same ones, as they do the same in each step.
void reducer::drop_unused_plans(const job& one) {
  const std::int64_t steps_unused = one.steps_are_told ? 10 : 1000;
  std::erase_if(plans_, [&](const auto& kept) { return one.step - kept.second.step > steps_unused; });
}

}  // namespace adasum::python
