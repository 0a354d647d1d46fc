// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect only: this call takes no shard; adasum_allreduce, combine_allreduce and plan_allreduce do
#include <adasum/allreduce.hpp>
#include <adasum/communicators/self.hpp>
#include <adasum/core/parts.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/reduce_scatter.hpp>

/// A shard of the result cannot be dealt out further.
void use(std::vector<float>& gradient) {
  const adasum::shard mine{.replica = 0, .index = 0};
#ifdef CORRECTED
  adasum::adasum_allreduce(adasum::serial_space{}, adasum::self_communicator{}, gradient, mine);
#else
  adasum::adasum_reduce_scatter(adasum::serial_space{}, adasum::self_communicator{}, gradient, mine);
#endif
}
