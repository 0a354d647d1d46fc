// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <adasum/core/parts.hpp>
#include <adasum/core/report.hpp>

#include "../c/arguments.hpp"
#include "../c/calls.hpp"
#include "device_order.hpp"
#include "group_worker.hpp"
#include "kernels.hpp"
#include "profiler.hpp"

namespace adasum::python {

/// @throws bad_input  they cannot be read
void require_settings(const std::string& rule, const std::string& options, const std::string& choice);

/// Reduces tensors among the ranks of a process group on the group's thread, so that the caller, which is the backward pass,
/// goes on. Plans are made when a tensor of new segments comes, and kept until none has come for some steps:
/// DistributedDataParallel cuts its gradients into other buckets after the first one. Each place in a step has plans of its own,
/// as a rule may keep something about each tensor from step to step.
class reducer {
 public:
  using future = c10::intrusive_ptr<c10::ivalue::Future>;

  /// Collective over the group: all ranks learn if one fails.
  /// @param rule, options  as the C interface reads them
  /// @param part  which part of its tensors this rank has, if they are cut over several ranks
  /// @param problem  what is wrong with other arguments of this rank; empty if nothing
  /// @param choice   "auto", "pytorch" or "compiled"
  /// @throws bad_input, communication_error
  reducer(std::shared_ptr<group_worker> worker, const std::string& rule, const std::string& options,
          std::optional<shard> part, const std::string& problem, const std::string& choice, processor_names processors);
  reducer(const reducer&) = delete;
  reducer& operator=(const reducer&) = delete;
  /// By destroy() only.
  ~reducer() = default;
  /// Destroys one that is not abandoned, when what has been asked for is done: waits for that, unless the caller is the group's
  /// thread itself.
  static void destroy(reducer* one);

  /// Begins to reduce the tensor in place, and returns a future that is completed with `result` when that is done, or with
  /// the error. Where the tensor cannot be reduced, the other ranks are told, and all futures fail.
  /// @param lengths  of segments, in the order of the tensor's indices; null: all of it is one
  /// @param problem  what is wrong with the tensor; empty if nothing is known
  future reduce(const at::Tensor& tensor, std::optional<std::vector<std::size_t>> lengths, c10::IValue result,
                const std::string& problem = {});
  /// The same for a sparse tensor, which then has all rows that any rank has. Each row is a segment.
  future reduce_rows(const at::Tensor& tensor, c10::IValue result);
  /// In place of a reduction that cannot be. The other ranks are assumed to be where they were at this point of the step before.
  future refuse(const std::string& problem);

  /// A new step of the training begins. All ranks do so between the same reductions. Until this is called first, each
  /// reduction is a step.
  void begin_step();

  /// Whether the rule has one set of weights for all segments.
  bool is_whole_model() const;
  /// What the reductions of the last step in which there were any found, as JSON, in their order; of those that are done. Each
  /// says by which kernels.
  std::vector<std::string> reports() const;
  bool is_abandoned() const { return worker_->is_abandoned(); }

 private:
  struct job {
    at::Tensor tensor;
    std::vector<std::size_t> lengths;  // of real numbers
    bool lengths_fit = false;          // and are what the other ranks have
    c10::IValue result;
    std::optional<int> type;   // of them, if it can be reduced
    bool has_rows = false;     // of a sparse tensor
    std::string problem;    // if not empty: tell the others, and fail with it
    future done;
    std::exception_ptr failure = nullptr;
    std::int64_t step = 0;
    std::optional<device_order> order{};
    std::optional<device_order::turn> turn{};  // from the work's beginning to the future's completion
    kernels by = kernels::compiled;
    std::size_t place = 0;        // in the step
    bool steps_are_told = false;  // or each reduction is one
    profiler_of_thread profiler{};  // of the thread that asks
  };
  struct plan_key {
    std::size_t place;  // how many reductions came before in the step: all ranks count the same, whatever fails
    at::Device device;
    int type;
    std::vector<std::size_t> lengths;
    bool operator<(const plan_key& other) const {
      if (place != other.place) return place < other.place;
      if (device.type() != other.device.type()) return device.type() < other.device.type();
      if (device.index() != other.device.index()) return device.index() < other.device.index();
      if (type != other.type) return type < other.type;
      // Not vector's own operator: in libstdc++ 12 it compares too few bytes where the highest byte of a number comes first.
      return std::ranges::lexicographical_compare(lengths, other.lengths);
    }
  };
  struct kept_plan {
    c::any_plan plan;
    bool may_fail_late = false;  // see run_on_all
    std::int64_t step = 0;       // in which it was used last without an error, which all ranks count alike
  };

  future submit(const std::shared_ptr<job>& one);
  void carry_out(job& one);
  template <class Run>
  void run_on_all(const job& one, bool may_fail_late, const Run& run);
  void carry_out_rows(const job& one);
  void keep_report(const job& one, const report& found);
  void require_usual_device(const job& one) const;
  void refuse(const job& one);
  c::call_arguments arguments() const;
  kept_plan* expected_plan(const job& one);
  kept_plan& plan_for(const job& one);
  void drop_unused_plans(const job& one);

  std::shared_ptr<group_worker> worker_;
  std::string options_;
  processor_names processors_;
  kernel_choice choice_;
  c::request asked_;
  const bool is_profiled_ = profiler_is_asked_for();

  mutable std::mutex mutex_;
  std::int64_t step_ = 0;
  bool steps_are_told_ = false;
  std::int64_t step_of_reports_ = 0;
  struct kept_report {
    report found;
    kernels by = kernels::compiled;
  };
  std::deque<kept_report> reports_;  // the first of them are those of that step
  std::size_t report_count_ = 0;

  // The thread's own:
  std::map<plan_key, kept_plan> plans_;
  std::int64_t step_of_place_ = -1;
  std::size_t place_ = 0;  // of the next reduction in that step
};

}  // namespace adasum::python
