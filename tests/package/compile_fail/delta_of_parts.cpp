// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect only: write a plan of plan_allreduce: other plans do not give every rank the whole combined step
#include <adasum/communicators/self.hpp>
#include <adasum/delta.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/plan.hpp>
#include <adasum/reduce_scatter.hpp>

/// A rank that gets a part of the combined step cannot take the step.
void use(const std::vector<float>& before, std::vector<float>& weights) {
#ifdef CORRECTED
  auto plan = adasum::plan_allreduce<float>(adasum::serial_space{}, adasum::self_communicator{}, weights.size());
#else
  auto plan = adasum::plan_reduce_scatter<float>(adasum::serial_space{}, adasum::self_communicator{}, weights.size());
#endif
  adasum::delta_allreduce(plan, before, weights);
}
