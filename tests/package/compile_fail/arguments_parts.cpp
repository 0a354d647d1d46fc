// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect only: this call takes no parts; reduce_scatter does
#include <adasum/allreduce.hpp>
#include <adasum/communicators/self.hpp>
#include <adasum/core/parts.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/reduce_scatter.hpp>

/// All ranks get all of the result.
void use(std::vector<float>& gradient) {
  const adasum::parts lengths{600, 400};
#ifdef CORRECTED
  adasum::adasum_reduce_scatter(adasum::serial_space{}, adasum::self_communicator{}, gradient, lengths);
#else
  adasum::adasum_allreduce(adasum::serial_space{}, adasum::self_communicator{}, gradient, lengths);
#endif
}
