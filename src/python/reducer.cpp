// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "reducer.hpp"

#include <algorithm>
#include <exception>
#include <memory>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include <adasum/core/error.hpp>
#include <adasum/detail/engine/call_signature.hpp>
#include <adasum/detail/engine/collective_setup.hpp>
#include <adasum/report_text.hpp>
#include <adasum/torch_tensor.hpp>

#include "real_numbers.hpp"
#include "sparse_rows.hpp"

namespace adasum::python {
namespace {

constexpr const char* call = "adasum.torch";

/// The type of its real numbers, as the C interface numbers it; null if it is none that can be reduced.
std::optional<int> type_of(const at::Tensor& tensor) {
  switch (c10::toRealValueType(tensor.scalar_type())) {
    case at::kDouble: return static_cast<int>(number_format::binary64);
    case at::kFloat: return static_cast<int>(number_format::binary32);
    case at::kHalf: return static_cast<int>(number_format::binary16);
    case at::kBFloat16: return static_cast<int>(number_format::bfloat16);
    default: return std::nullopt;
  }
}

c::request asked_of(const std::string& rule, const std::string& options) {
  auto asked =
      c::rule_and_options_of({.call = call, .count = 0, .type = 0, .rule = rule.c_str(), .options = options.c_str()});
  adasum::detail::require_valid(asked.choices, call);
  return asked;
}

std::string text_of(const std::exception& problem) {
  const auto* const of_torch = dynamic_cast<const c10::Error*>(&problem);
  return of_torch ? std::string(call) + ": " + of_torch->what_without_backtrace() : problem.what();
}

std::size_t sum_of(const std::vector<std::size_t>& lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), std::size_t{0});
}

/// What PyTorch computes when it is read, which real_numbers does.
constexpr c10::DispatchKeySet lazy({c10::DispatchKey::Conjugate, c10::DispatchKey::Negative});

bool shares_elements(const at::Tensor& tensor) {
  std::vector<std::pair<std::int64_t, std::int64_t>> dimensions;  // stride, size
  for (std::int64_t i = 0; i < tensor.dim(); ++i)
    if (tensor.size(i) != 1) dimensions.emplace_back(tensor.stride(i), tensor.size(i));
  std::ranges::sort(dimensions);
  std::int64_t end = 1;  // beyond the elements of the dimensions so far
  for (const auto& [stride, size] : dimensions) {
    if (stride < end) return tensor.numel() != 0;
    end += stride * (size - 1);
  }
  return false;
}

bool may_fail_late(at::Device device, kernels by) { return !device.is_cpu() || by == kernels::pytorch; }

/// @throws bad_input  it cannot be reduced. @param rows  whether it may be sparse
void require_usable(const at::Tensor& tensor, bool rows) {
  const bool is_sparse = tensor.defined() && tensor.layout() == at::kSparse;
  if (!rows || !is_sparse) {
    adasum::detail::require_memory(tensor, call, lazy);
    if (shares_elements(tensor))
      throw bad_input({call, ": the tensor has elements that share memory; give it tensor.contiguous()"});
  }
  if (!type_of(tensor))
    throw bad_input({call, ": the tensor holds ", c10::toString(tensor.scalar_type()),
                     "; gradients are Double, Float, Half or BFloat16, or complex numbers of these"});
}

}  // namespace

void require_settings(const std::string& rule, const std::string& options, const std::string& choice) {
  asked_of(rule, options);
  kernel_choice_of(choice);
}

reducer::reducer(std::shared_ptr<group_worker> worker, const std::string& rule, const std::string& options,
                 std::optional<shard> part, const std::string& problem, const std::string& choice,
                 processor_names processors)
    : worker_(std::move(worker)), options_(options), processors_(std::move(processors)) {
  worker_->carry_out([&] {
    adasum::detail::collective_setup(call, worker_->host_comm(), c::asks_for_agreement(options_.c_str()))
        .run([&](auto& others) {
          if (!problem.empty()) throw bad_input(problem);
          asked_ = asked_of(rule, options_);
          choice_ = kernel_choice_of(choice);
          asked_.part = std::move(part);
          adasum::detail::call_signature mine;
          mine.set(mine.activity, call);
          others.meet(mine);
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

reducer::future reducer::reduce(const at::Tensor& tensor, std::optional<std::vector<std::size_t>> lengths,
                                c10::IValue result, const std::string& problem) {
  const auto one = std::make_shared<job>();
  one->result = std::move(result);
  try {
    one->type = type_of(tensor);
    const auto count = static_cast<std::size_t>(tensor.numel());
    one->lengths = lengths ? std::move(*lengths) : std::vector{count};
    const auto total = sum_of(one->lengths);
    one->lengths_fit = total == count && problem.empty();
    if (tensor.is_complex())  // a complex number is two real ones
      for (auto& length : one->lengths) length *= 2;
    if (!problem.empty()) throw bad_input({call, ": ", problem});
    require_usable(tensor, false);
    one->by = kernels_for(tensor.device(), choice_);
    if (total != count) throw bad_input({call, ": the tensor has ", count, " elements, its segments ", total});
    one->tensor = tensor;
  } catch (const std::exception& wrong) {
    one->problem = text_of(wrong);
  }
  return submit(one);
}

reducer::future reducer::reduce_rows(const at::Tensor& tensor, c10::IValue result) {
  const auto one = std::make_shared<job>();
  one->has_rows = true;
  try {
    if (asked_.part) throw bad_input({call, ": with `shard`, gradients must be dense: use nn.Embedding(sparse=False)"});
    require_usable(tensor, true);
    one->by = kernels_for(tensor.device(), choice_);
    one->tensor = tensor;
  } catch (const std::exception& wrong) {
    one->problem = text_of(wrong);
  }
  one->result = std::move(result);
  return submit(one);
}

reducer::future reducer::refuse(const std::string& problem) {
  const auto one = std::make_shared<job>();
  one->problem = std::string(call) + ": " + problem;
  return submit(one);
}

reducer::future reducer::submit(const std::shared_ptr<job>& one) {
  if (is_profiled_) one->profiler = profiler_of_thread::here();
  if (one->tensor.defined() && !one->tensor.is_inference()) one->tensor.unsafeGetTensorImpl()->bump_version();
  if (one->tensor.defined()) try {
      one->order.emplace(one->tensor);
    } catch (const std::exception& failed) {
      one->problem = text_of(failed);
    }
  std::vector<at::Device> devices;  // whose work whoever waits for the future waits for, too
  if (one->order && !one->order->device().is_cpu()) devices.push_back(one->order->device());
  one->done = c10::make_intrusive<c10::ivalue::Future>(c10::PyObjectType::get(), std::move(devices));
  {
    const std::lock_guard lock(mutex_);
    one->steps_are_told = steps_are_told_;
    one->step = steps_are_told_ ? step_ : ++step_;
  }
  auto done = one->done;
  worker_->submit(
      [this, one] {
        try {
          const profiler_of_thread::guard recorded(one->profiler, "reduce");
          if (one->order) try {
              one->turn.emplace(*one->order, worker_->streams(), one->tensor);
            } catch (const std::exception& failed) {
              one->problem = text_of(failed);
            }
          carry_out(*one);
        } catch (...) {
          one->failure = std::current_exception();
          if (one->turn) one->turn->drain();
        }
      },
      [one] {
        if (one->failure)
          one->done->setError(one->failure);
        else
          one->done->markCompleted(std::move(one->result));
        one->turn.reset();
      });
  return done;
}

bool reducer::is_whole_model() const { return asked_.rule.whole_model(); }

void reducer::begin_step() {
  const std::lock_guard lock(mutex_);
  steps_are_told_ = true;
  ++step_;
}

std::vector<std::string> reducer::reports() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < report_count_; ++i) {
    const auto& [found, by] = reports_[i];
    texts.push_back("{\"kernels\": \"" + std::string(to_string(by)) + "\", " +
                    to_json(found, step_of_reports_).substr(1));
  }
  return texts;
}

void reducer::carry_out(job& one) {
  if (std::exchange(step_of_place_, one.step) != one.step) place_ = 0;
  one.place = place_++;
  drop_unused_plans(one);
  if (one.has_rows) {
    // Or refuse() would expect the other ranks to run one of them.
    std::erase_if(plans_, [&](const auto& kept) { return kept.first.place == one.place; });
    return carry_out_rows(one);
  }
  std::optional<real_numbers> numbers;
  if (one.problem.empty()) try {
      require_usual_device(one);
      numbers.emplace(one.tensor);
    } catch (const std::exception& failed) {
      one.problem = text_of(failed);
    }
  if (!numbers) refuse(one);
  const auto& real = numbers->get();
  auto& kept = plan_for(one);
  const report* found = nullptr;
  run_on_all(one, kept.may_fail_late, [&] {
    found = &kept.plan.run(real.data_ptr(), static_cast<std::size_t>(real.numel()));
    numbers->write_back();
  });
  keep_report(one, *found);
  kept.step = one.step;
}

/// The others may be running the plan that they have for such tensors of another device, some of which wait in memory that ranks
/// share, where no message of a new plan reaches them.
void reducer::require_usual_device(const job& one) const {
  for (const auto& [key, kept] : plans_)
    if (key.place == one.place && key.type == one.type && key.lengths == one.lengths &&
        key.device != one.tensor.device())
      throw bad_input({call, ": such tensors of this State have been on ", key.device.str(), ", and now one is on ",
                       one.tensor.device().str(), "; make another State for it"});
}

/// Runs a plan. PyTorch's operators may fail on one rank behind the last message: then all hear of it before one of them uses
/// its result. Ranks that have a plan agree on whether that may be. They also find out there whether they have run different
/// ones, whose messages may have been of equal lengths.
template <class Run>
void reducer::run_on_all(const job& one, bool may_fail_late, const Run& run) {
  if (!may_fail_late) return run();
  adasum::detail::collective_setup(call, worker_->host_comm(), false).run([&](auto& others) {
    run();
    if (one.turn) one.turn->wait();
    adasum::detail::call_signature ending;
    ending.set(ending.activity, "ending a reduction");
    ending.segments = one.lengths.size();
    if (!asked_.part) ending.segments_hash = adasum::detail::hash(one.lengths);  // or ranks have shards of any lengths
    ending.set(ending.scalar, c10::toString(one.tensor.scalar_type()));
    ending.rule = adasum::detail::signature_of(asked_.rule.name, asked_.rule.parameters());
    ending.set(ending.options, describe(asked_.choices));
    others.meet(ending);
  });
}

/// A plan serves only once: in the next step, there are other rows.
void reducer::carry_out_rows(const job& one) {
  if (!one.problem.empty()) refuse(one);
  sparse_rows rows(one.tensor, worker_->host_comm(), call, c::asks_for_agreement(options_.c_str()));
  std::optional<c::request> asked;  // it needs memory
  c::any_plan plan;
  c::prepare_among_ranks(worker_->host_comm(), arguments(), [&] {
    asked = asked_;
    rows.spread();
    const auto lengths = rows.lengths();
    asked->cut = segments(std::span<const std::size_t>(lengths));
  });
  const auto device = rows.numbers().device();
  make_plan(plan, *worker_, device, one.by, *type_of(rows.numbers()), *asked, arguments(), processors_);
  const report* found = nullptr;
  run_on_all(one, may_fail_late(device, one.by), [&] {
    found = &plan.run(rows.numbers().data_ptr(), static_cast<std::size_t>(rows.numbers().numel()));
    rows.write_back();
  });
  keep_report(one, *found);
}

void reducer::keep_report(const job& one, const report& found) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(step_of_reports_, one.step) != one.step) report_count_ = 0;
  if (report_count_ == reports_.size()) reports_.emplace_back();
  reports_[report_count_++] = {found, one.by};
}

/// The other ranks are about to run the plan for these lengths, or to make it. Throws.
void reducer::refuse(const job& one) {
  if (auto* const kept = one.has_rows ? nullptr : expected_plan(one)) {
    run_on_all(one, kept->may_fail_late, [&] { kept->plan.refuse(one.problem, nullptr); });
  }
  c::prepare_among_ranks(worker_->host_comm(), arguments(), [&] { throw bad_input(one.problem); });
}

c::call_arguments reducer::arguments() const {
  return {.call = call, .count = 0, .type = 0, .options = options_.c_str()};
}

/// The one at this place that is most like the tensor, and of several that which was used last; null if there is none.
reducer::kept_plan* reducer::expected_plan(const job& one) {
  kept_plan* best = nullptr;
  std::tuple<bool, bool, std::int64_t> likeness;
  for (auto& [key, kept] : plans_) {
    const bool has_lengths = key.lengths == one.lengths;
    if (key.place != one.place || (one.lengths_fit && !has_lengths)) continue;
    const std::tuple its_likeness(has_lengths, key.type == one.type, kept.step);
    if (best && its_likeness <= likeness) continue;
    best = &kept;
    likeness = its_likeness;
  }
  return best;
}

reducer::kept_plan& reducer::plan_for(const job& one) {
  plan_key key{.place = one.place, .device = one.tensor.device(), .type = *one.type, .lengths = one.lengths};
  auto found = plans_.find(key);
  if (found == plans_.end()) {
    kept_plan made;
    auto asked = asked_;
    asked.cut = segments(std::span<const std::size_t>(one.lengths));
    make_plan(made.plan, *worker_, key.device, one.by, key.type, asked, arguments(), processors_);
    made.may_fail_late = may_fail_late(key.device, one.by);
    made.step = one.step;
    found = plans_.emplace(std::move(key), std::move(made)).first;
  }
  return found->second;
}

/// All ranks drop the same ones, as they do the same in each step.
void reducer::drop_unused_plans(const job& one) {
  const std::int64_t steps_unused = one.steps_are_told ? 10 : 1000;
  std::erase_if(plans_, [&](const auto& kept) { return one.step - kept.second.step > steps_unused; });
}

}  // namespace adasum::python
