// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "reducer.hpp"

#include <cstdint>
#include <exception>
#include <numeric>
#include <optional>
#include <utility>

#include <adasum/comm/c10d.hpp>
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

reducer::reducer(c10::intrusive_ptr<::c10d::ProcessGroup> group, const std::string& rule, const std::string& options,
                 std::optional<shard> part)
    : options_(options),
      asked_(c::rule_and_options_of(
          {.call = call, .count = 0, .type = 0, .rule = rule.c_str(), .options = options_.c_str()})) {
  asked_.part = std::move(part);
  comm_ = any_communicator(c10d_communicator(std::move(group)));
  thread_ = std::thread([this] { run(); });
}

reducer::~reducer() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

reducer::future reducer::reduce(const at::Tensor& tensor, std::vector<std::size_t> lengths, c10::IValue result) {
  job one;
  one.tensor = tensor;
  one.lengths = std::move(lengths);
  one.result = std::move(result);
  one.done = c10::make_intrusive<c10::ivalue::Future>(c10::PyObjectType::get());
  one.problem = problem_of(one.tensor, one.lengths);
  auto done = one.done;
  {
    const std::lock_guard lock(mutex_);
    one.step = step_;
    jobs_.push_back(std::move(one));
  }
  changed_.notify_all();
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
  ++step_;
}

std::vector<std::string> reducer::reports() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < report_count_; ++i) texts.push_back(to_json(reports_[i], step_of_reports_));
  return texts;
}

void reducer::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ends_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    auto one = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    std::exception_ptr failure;
    try {
      carry_out(one);
    } catch (...) {
      failure = std::current_exception();
    }
    if (failure)
      one.done->setError(failure);
    else
      one.done->markCompleted(std::move(one.result));
    one = {};
    lock.lock();
  }
}

void reducer::carry_out(job& one) {
  drop_unused_plans(one.step);
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
  for (const auto& [key, kept] : plans_)
    if (key.lengths == one.lengths) kept.plan->refuse(problem, nullptr);
  c::prepare_among_ranks(comm_, {.call = call, .count = 0, .type = 0, .options = options_.c_str()},
                         [&] { throw bad_input(problem); });
}

reducer::kept_plan& reducer::plan_for(const job& one) {
  const int type = type_of(one.tensor);
  plan_key key{.type = type, .lengths = one.lengths};
  auto found = plans_.find(key);
  if (found == plans_.end()) {
    kept_plan made;
    auto asked = asked_;
    asked.cut = segments(std::span<const std::size_t>(one.lengths));
    made.plan = c::calls_of(type, call).empty_plan(asked);
    made.plan->make(comm_, asked);
    found = plans_.emplace(std::move(key), std::move(made)).first;
  }
  found->second.step = one.step;
  return found->second;
}

/// All ranks drop the same ones, as they do the same in each step.
void reducer::drop_unused_plans(std::int64_t step) {
  std::erase_if(plans_, [&](const auto& one) { return step - one.second.step > steps_unused; });
}

}  // namespace adasum::python
