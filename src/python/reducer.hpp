// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <adasum/comm/any.hpp>
#include <adasum/core/report.hpp>
#include <adasum/core/shard.hpp>

#include "../c/calls.hpp"

namespace adasum::python {

/// Reduces tensors among the ranks of a process group, one after the other, on a thread of its own, so that the caller, which
/// is the backward pass, goes on. Plans are made when a tensor of new segments comes, and kept until none has come for some
/// steps: DistributedDataParallel cuts its gradients otherwise after the first one.
class reducer {
 public:
  using future = c10::intrusive_ptr<c10::ivalue::Future>;

  /// Collective over the group.
  /// @param rule, options  as the C interface reads them
  /// @param part  which part of its tensors this rank has, if they are cut over several ranks
  /// @throws bad_input, c10d_error
  reducer(c10::intrusive_ptr<::c10d::ProcessGroup> group, const std::string& rule, const std::string& options,
          std::optional<shard> part);
  reducer(const reducer&) = delete;
  reducer& operator=(const reducer&) = delete;
  ~reducer();

  /// Begins to reduce the tensor in place, and returns a future that is completed with `result` when that is done, or with
  /// the error.
  /// Where the tensor cannot be reduced, the other ranks are told, and all futures fail.
  future reduce(const at::Tensor& tensor, std::vector<std::size_t> lengths, c10::IValue result);

  /// A new step of the training begins. All ranks do so between the same reductions.
  void begin_step();

  /// Whether the rule has one set of weights for all segments.
  bool is_whole_model() const;
  /// What the reductions of the last step in which there were any found, as JSON, in their order; of those that are done.
  std::vector<std::string> reports() const;

 private:
  struct job {
    at::Tensor tensor;
    std::vector<std::size_t> lengths;
    c10::IValue result;
    std::string problem;  // if not empty: tell the others, and fail with it
    future done;
    std::int64_t step = 0;
  };
  struct kept_plan {
    std::unique_ptr<c::any_plan> plan;
    std::int64_t step = 0;  // in which it was used last
  };
  struct plan_key {
    int type;
    std::vector<std::size_t> lengths;
    bool operator<(const plan_key& other) const {
      // Not vector's own operator: in libstdc++ 12 it compares too few bytes where the highest byte of a number comes first.
      return type != other.type ? type < other.type : std::ranges::lexicographical_compare(lengths, other.lengths);
    }
  };
  static constexpr std::int64_t steps_unused = 10;

  void run();
  void carry_out(job& one);
  void refuse(const job& one);
  kept_plan& plan_for(const job& one);
  void drop_unused_plans(std::int64_t step);

  std::string options_;
  c::request asked_;
  any_communicator comm_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<job> jobs_;
  bool ends_ = false;
  std::int64_t step_ = 0;
  std::int64_t step_of_reports_ = 0;
  std::deque<report> reports_;  // the first of them are those of that step
  std::size_t report_count_ = 0;

  std::map<plan_key, kept_plan> plans_;  // the thread's own
  std::thread thread_;                   // last: it uses the others
};

}  // namespace adasum::python
