// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <cstddef>
#include <vector>

#include <adasum/adasum.hpp>
#ifdef ADASUM_TEST_MPI
#include <adasum/mpi.hpp>
#endif
#include <adasum/testing.hpp>

/// The public calls, for tools that look at templates only where they are used.

namespace {

template <class Comm>
float reduce(const Comm& comm) {
  const adasum::serial_space exec;
  const adasum::segments segs{6, 0, 4};
  std::vector<float> gradient(segs.total(), 1), other(segs.total(), 2), both(segs.total());

  adasum::adasum_pair(exec, gradient, other, both, segs);
  const std::vector<std::vector<float>> several{gradient, other, both};
  adasum::adasum_tree(exec, several, both, segs);
  adasum::combine(exec, several, both, adasum::rules::geometric_median{}, segs);

  const auto called = adasum::adasum_allreduce(exec, comm, gradient, segs);
  adasum::combine_allreduce(exec, comm, gradient, adasum::rules::adacons{}, segs, adasum::schedules::all_to_all{},
                            {.nonfinite = adasum::nonfinite_policy::exclude, .wire = adasum::wire_format::bfloat16});
  auto plan = adasum::plan_allreduce<float>(exec, comm, segs);
  plan(gradient);
  auto part = adasum::plan_reduce_scatter<float>(exec, comm, segs);
  part(gradient);
  return gradient.front() + static_cast<float>(called.orthogonality());
}

}  // namespace

int main() {
  float sum = 0;
  for (const auto& comm : adasum::thread_communicator::group(2)) sum += reduce(comm);
#ifdef ADASUM_TEST_MPI
  sum += reduce(adasum::mpi_communicator(MPI_COMM_WORLD));
#endif
  return sum > 0 ? 0 : 1;
}
