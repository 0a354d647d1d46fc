// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Adasum on a CUDA stream, layer by layer: enqueued, as kernels are.
#include <adasum/adasum.hpp>
#include <adasum/exec/cuda.hpp>

#include <thrust/host_vector.h>

#include <cmath>
#include <cstdio>

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("skipped: there is no CUDA device here");
    return 77;
  }
  cudaStream_t stream = nullptr;
  cudaStreamCreate(&stream);
  bool as_expected = true;
  {
    const adasum::cuda_space exec{stream};
    const adasum::segments layers{600, 400};

    thrust::host_vector<float> one(1000, 1.0f), other(1000, 1.0f);
    for (std::size_t i = 600; i < 1000; ++i) other[i] = i % 2 == 0 ? 1.0f : -1.0f;  // orthogonal in the second layer
    const thrust::device_vector<float> a = one, b = other;
    thrust::device_vector<float> out(1000);

    adasum::enqueue_adasum_pair(exec, a, b, out, layers);  // returns at once
    exec.fence();
    const thrust::host_vector<float> result = out;
    std::printf("equal: %g; orthogonal: %g %g\n", static_cast<double>(result[0]), static_cast<double>(result[600]),
                static_cast<double>(result[601]));
    const auto near = [](float x, float y) { return std::abs(x - y) < 1e-6f; };
    as_expected = near(result[0], 1) && near(result[600], 2) && near(result[601], 0);
  }
  cudaStreamDestroy(stream);
  return as_expected ? 0 : 1;
}
