// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <functional>

/// What tests may ask of the emulated device.
namespace emulated_cuda {

/// How often, since the program began, in all threads.
struct counts {
  std::size_t allocations = 0;  ///< of device memory and pinned memory
  std::size_t host_waits = 0;   ///< the host waited for a stream, an event or a copy
  std::size_t kernels = 0;      ///< were launched
};
counts count();

/// From now on (or no longer), what this thread asks of the runtime fails: kernels, waiting, memory.
void break_device(bool now);

/// Work for a stream, as kernels are: run when somebody waits for it.
void enqueue(cudaStream_t, std::function<void()> work);

/// The device: so many multiprocessors, and the shared memory of each.
inline constexpr int multiprocessors = 2;
inline constexpr std::size_t shared_bytes = 100 * 1024;

}  // namespace emulated_cuda
