// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The adaptive sum of one gradient per MPI rank, in device memory:  mpirun -n 4 07_gpu_mpi
// If MPI can send device memory, it is sent directly; otherwise it is staged through the host.
#include <adasum/adasum.hpp>
#include <adasum/communicators/mpi.hpp>
#include <adasum/exec/cuda.hpp>

#include <thrust/host_vector.h>

#include <cmath>
#include <cstdio>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("skipped: there is no CUDA device here");
    MPI_Finalize();
    return 77;
  }
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  const auto rank = static_cast<std::size_t>(comm.rank()), ranks = static_cast<std::size_t>(comm.size());
  cudaSetDevice(comm.rank() % devices);
  cudaStream_t stream = nullptr;
  cudaStreamCreate(&stream);
  bool as_expected = true;  // the sum in the first layer, the mean in the second
  {
    const adasum::cuda_space exec{stream};

    // One layer in which each rank moves along its own axis, and one in which all agree.
    const adasum::segments layers{ranks, 1000};
    thrust::host_vector<float> mine(layers.total(), 0.0f);
    mine[rank] = static_cast<float>(rank + 1);
    for (std::size_t i = ranks; i < mine.size(); ++i) mine[i] = 2;
    thrust::device_vector<float> gradient = mine;

    const adasum::report found = adasum::adasum_allreduce(exec, comm, gradient, layers);

    const thrust::host_vector<float> result = gradient;
    for (std::size_t i = 0; i < result.size(); ++i)
      as_expected &= std::abs(result[i] - (i < ranks ? static_cast<float>(i + 1) : 2.0f)) < 1e-5f;
    if (rank == 0)
      std::printf("%zu ranks, %s, orthogonality %g and %g\n", ranks,
                  adasum::mpi_communicator::is_gpu_aware() ? "GPU-aware MPI" : "by way of the host",
                  found.orthogonality(0), found.orthogonality(1));
  }
  cudaStreamDestroy(stream);
  MPI_Finalize();
  return as_expected ? 0 : 1;
}
