// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// As refused.cpp, for gradients in memory of a device.
#include <span>
#include <vector>

#include <adasum/adasum.hpp>
#include <adasum/comm/any.hpp>
#include <adasum/comm/nccl.hpp>
#include <adasum/exec/cuda.hpp>

namespace {

using namespace adasum;

[[maybe_unused]] void calls(const cuda_space& exec, const nccl_communicator& nccl, const any_communicator& any,
                            const self_communicator& self, std::span<float> g, const segments& cut, std::vector<float>& host) {
  adasum_allreduce(exec, any, g);                 // any_communicator × cuda_space: write a communicator for this execution space
  adasum_allreduce(serial_space{}, nccl, host);   // nccl_communicator × serial_space: write a communicator for this execution space
  adasum_allreduce(exec, nccl, g, schedules::shared_memory{});         // nccl_communicator × shared_memory: this schedule works in memory that the ranks share
  enqueue_adasum_allreduce(exec, self, g);        // self_communicator × enqueue_adasum_allreduce: no communicator that works on a stream
  plan_enqueued_allreduce<float>(exec, nccl, cut, schedules::shared_memory{});  // plan_enqueued_allreduce × shared_memory: works on memory that ranks share, not on messages
  plan_enqueued_allreduce<float>(exec, nccl, cut, rules::multi_krum{});    // plan_enqueued_allreduce × rules of all at once: what is only enqueued is combined along the tree
  plan_enqueued_allreduce<float>(exec, nccl, cut, rules::adacons{});       // plan_enqueued_allreduce × rules by sums: what is only enqueued is combined along the tree
  plan_enqueued_allreduce<float>(exec, nccl, cut, rules::adasum_linear{});  // plan_enqueued_allreduce × adasum_linear: what is only enqueued is combined along the tree
}

}  // namespace
