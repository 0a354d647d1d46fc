// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <adasum/torch.hpp>

/// Calls on PyTorch's process groups and tensors, for tools that look at templates only where they are used.
int main() {
  const adasum::serial_space exec;
  const adasum::c10d_communicator comm;  // empty: this is compiled, not run
  const auto tensor = at::zeros({10}, at::kFloat);
  const adasum::segments segs{6, 0, 4};
  adasum::visit_elements(tensor, [&](auto gradient) {
    if constexpr (requires { gradient.front() += 1.0f; }) adasum::adasum_allreduce(exec, comm, gradient, segs);
  });
  auto plan = adasum::plan_allreduce<float>(exec, comm, segs);
  plan.start(adasum::elements<float>(tensor));
  plan.wait();
  return 0;
}
