// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <span>
#include <vector>

#include <thrust/device_vector.h>

#include <adasum/adasum.hpp>
#include <adasum/communicators/nccl.hpp>
#include <adasum/enqueued_plan.hpp>
#include <adasum/exec/cuda.hpp>
#ifdef ADASUM_TEST_MPI
#include <adasum/communicators/mpi.hpp>
#endif

/// Calls on a device, which is the emulated one of tests/emulated_cuda: for tools that look at templates only where they
/// are used. Elements of one type, since the code is the same for all.

namespace {

void combine(const adasum::cuda_space& exec, const adasum::segments& segs) {
  thrust::device_vector<float> one(segs.total()), other(segs.total()), out(segs.total());
  adasum::adasum_pair(exec, one, other, out, segs);
  adasum::enqueue_adasum_pair(exec, one, other, out, segs);
  const std::vector<const float*> both{thrust::raw_pointer_cast(one.data()), thrust::raw_pointer_cast(other.data())};
  const std::vector<std::span<const float>> several{{both[0], segs.total()}, {both[1], segs.total()}};
  adasum::adasum_tree(exec, several, out, segs);
  adasum::enqueue_adasum_tree(exec, several, out, segs);
  adasum::combine(exec, several, out, adasum::rules::geometric_median{}, segs);
}

template <class Comm>
void reduce(const adasum::cuda_space& exec, const Comm& comm, const adasum::segments& segs) {
  thrust::device_vector<float> gradient(segs.total());
  adasum::adasum_allreduce(exec, comm, gradient, segs);
  auto plan = adasum::plan_allreduce<float>(exec, comm, segs, adasum::schedules::recursive_halving{});
  plan(gradient);
}

void enqueue(const adasum::cuda_space& exec, const adasum::nccl_communicator& comm, const adasum::segments& segs) {
  thrust::device_vector<float> gradient(segs.total());
  adasum::enqueue_adasum_allreduce(exec, comm, gradient, segs);
  auto plan = adasum::plan_enqueued_allreduce<float>(exec, comm, segs);
  plan(gradient);
}

}  // namespace

int main() {
  cudaStream_t stream = nullptr;
  if (cudaStreamCreate(&stream) != cudaSuccess) return 1;
  const adasum::cuda_space exec(stream);
  const adasum::segments segs{6, 0, 4};
  combine(exec, segs);
  const adasum::nccl_communicator nccl;
  reduce(exec, nccl, segs);
  enqueue(exec, nccl, segs);
#ifdef ADASUM_TEST_MPI
  const adasum::mpi_communicator mpi(MPI_COMM_WORLD);
  reduce(exec, mpi, segs);
#endif
  exec.fence();
  return 0;
}
