// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect only: a plan is made for segments or a length: write adasum::segments.lengths., or gradient.size..
#include <adasum/communicators/self.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/plan.hpp>

/// Lengths, or a gradient? A plan has not seen any.
void use(const std::vector<std::size_t>& lengths) {
  const adasum::serial_space exec;
  const adasum::self_communicator comm;
#ifdef CORRECTED
  adasum::plan_allreduce<float>(exec, comm, adasum::segments(lengths));
#else
  adasum::plan_allreduce<float>(exec, comm, lengths);
#endif
}
