// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect only: write adasum::segments.600, 400. .or parts.: only then are numbers taken for lengths
#include <adasum/adasum.hpp>

#ifdef __clang__
#pragma clang diagnostic ignored "-Wmissing-braces"  // a second remark on the same braces
#endif

void use(std::vector<float>& gradient) {
  const adasum::serial_space exec;
  const adasum::self_communicator comm;
  auto plan = adasum::plan_allreduce<float>(exec, comm, {600, 300, 100});  // which has no other meaning there
  plan(gradient);
#ifdef CORRECTED
  adasum::adasum_allreduce(exec, comm, gradient, adasum::segments{600, 300, 100});
#else
  adasum::adasum_allreduce(exec, comm, gradient, {600, 300, 100});
#endif
}
