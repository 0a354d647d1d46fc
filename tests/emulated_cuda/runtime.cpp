// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "fibers.hpp"
#include "memory.hpp"

// Kernels ask for dynamic shared memory under this name.
namespace adasum::detail::cuda {
constinit thread_local uint4 on_chip[emulated_cuda::shared_bytes / sizeof(uint4)] = {};
}

namespace emulated_cuda {
namespace {

struct {
  std::atomic<std::size_t> allocations, host_waits, kernels;
} counters;

thread_local bool broken = false;

}  // namespace

// ── streams ──

class graph {
 public:
  std::vector<std::function<void()>> work;
};

class stream : public std::enable_shared_from_this<stream> {
 public:
  void enqueue(std::function<void()> work) {
    const std::scoped_lock lock(mutex_);
    if (capture)
      capture->work.push_back(std::move(work));
    else
      work_.push_back(std::move(work)), ++enqueued_;
  }

  std::size_t enqueued() {
    const std::scoped_lock lock(mutex_);
    return enqueued_;
  }

  /// Runs what was enqueued first, up to that number.
  void run_until(std::size_t number) {
    const std::scoped_lock one_at_a_time(running_);
    const arena::running here(device_memory());
    for (;;) {
      std::function<void()> next;
      {
        const std::scoped_lock lock(mutex_);
        if (done_ >= number || work_.empty()) return;
        next = std::move(work_.front());
        work_.pop_front();
        ++done_;
      }
      next();
    }
  }
  void run_all() { run_until(enqueued()); }

  std::unique_ptr<graph> capture;
  /// Every thread that makes streams stands for a process with a device of its own: it waits for its own streams only.
  const std::thread::id owner = std::this_thread::get_id();

 private:
  std::mutex mutex_, running_;
  std::deque<std::function<void()>> work_;
  std::size_t enqueued_ = 0, done_ = 0;
};

struct event {
  std::shared_ptr<stream> on{};  // may have been destroyed since, for everyone else
  std::size_t number = 0;
};

namespace {

stream& stream_of(cudaStream_t handle) {
  static const auto default_stream = std::make_shared<stream>();
  return handle ? *handle : *default_stream;
}

std::mutex streams_mutex;
std::set<std::shared_ptr<stream>> streams;  // shared with whoever is waiting for all of them

void run_block(dim3 block, dim3 block_dim, dim3 grid_dim, const std::function<void()>& thread, std::barrier<>* grid) {
  blockIdx = block;
  blockDim = block_dim;
  gridDim = grid_dim;
  fibers::run(
      block_dim.x, [&](unsigned t) { threadIdx = dim3(t); }, thread,
      [&](fibers::place where) {
        if (where == fibers::place::grid) {
          if (!grid) fail("a kernel waits for the grid that was not launched cooperatively");
          grid->arrive_and_wait();
        }
      });
}

void run_grid(dim3 grid, dim3 block, bool cooperative, const std::function<void()>& thread) {
  if (!cooperative) {
    for (unsigned b = 0; b < grid.x; ++b) run_block(dim3(b), block, grid, thread, nullptr);
    return;
  }
  std::barrier<> together(static_cast<std::ptrdiff_t>(grid.x));
  std::vector<std::jthread> blocks;
  for (unsigned b = 0; b < grid.x; ++b)
    blocks.emplace_back([&, b] { run_block(dim3(b), block, grid, thread, &together); });
}

}  // namespace

void break_device(bool now) { broken = now; }

counts count() { return {counters.allocations, counters.host_waits, counters.kernels}; }

void enqueue(cudaStream_t on, std::function<void()> work) { stream_of(on).enqueue(std::move(work)); }

cudaError_t enqueue_kernel(const cudaLaunchConfig_t& config, std::function<void()> thread) {
  const bool cooperative = config.numAttrs > 0 && config.attrs[0].val.cooperative;
  const auto blocks = config.gridDim.x;
  if (broken) return cudaErrorInvalidValue;
  if (blocks == 0 || config.blockDim.x == 0 || config.blockDim.x > 1024 || config.dynamicSmemBytes > shared_bytes ||
      (cooperative && blocks > 2 * multiprocessors))
    return cudaErrorInvalidConfiguration;
  ++counters.kernels;
  enqueue(config.stream, [grid = config.gridDim, block = config.blockDim, cooperative, thread = std::move(thread)] {
    run_grid(grid, block, cooperative, thread);
  });
  return cudaSuccess;
}

void wait_for_grid() { fibers::wait(fibers::place::grid); }

}  // namespace emulated_cuda

using namespace emulated_cuda;

void __syncthreads() { fibers::wait(fibers::place::block); }

const char* cudaGetErrorName(cudaError_t code) {
  switch (code) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration: return "cudaErrorInvalidConfiguration";
    case cudaErrorCooperativeLaunchTooLarge: return "cudaErrorCooperativeLaunchTooLarge";
    case cudaErrorStreamCaptureUnsupported: return "cudaErrorStreamCaptureUnsupported";
  }
  return "unknown";
}
const char* cudaGetErrorString(cudaError_t code) { return cudaGetErrorName(code); }
cudaError_t cudaGetLastError() { return cudaSuccess; }

cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : cudaErrorInvalidValue; }
cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int) {
  switch (which) {
    case cudaDevAttrMultiProcessorCount: *value = multiprocessors; break;
    case cudaDevAttrCooperativeLaunch: *value = 1; break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = static_cast<int>(shared_bytes); break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = static_cast<int>(shared_bytes) - 1024; break;
    case cudaDevAttrReservedSharedMemoryPerBlock: *value = 1024; break;
    case cudaDevAttrPageableMemoryAccess: *value = 0; break;
  }
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) { return *can = 0, cudaSuccess; }
cudaError_t cudaDeviceSynchronize() {
  ++counters.host_waits;
  std::vector<std::shared_ptr<stream>> all;
  {
    const std::scoped_lock lock(streams_mutex);
    std::copy_if(streams.begin(), streams.end(), std::back_inserter(all),
                 [](const auto& one) { return one->owner == std::this_thread::get_id(); });
  }
  stream_of(nullptr).run_all();
  for (const auto& one : all) one->run_all();
  return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t* made) {
  const std::scoped_lock lock(streams_mutex);
  *made = streams.insert(std::make_shared<stream>()).first->get();
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t on) {
  std::shared_ptr<stream> last;
  {
    const std::scoped_lock lock(streams_mutex);
    const auto found = std::find_if(streams.begin(), streams.end(), [&](const auto& one) { return one.get() == on; });
    if (found == streams.end()) fail("a stream is destroyed that is none");
    last = *found;
    streams.erase(found);
  }
  last->run_all();
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t on) {
  if (broken) return cudaErrorInvalidValue;
  if (stream_of(on).capture) return cudaErrorStreamCaptureUnsupported;
  ++counters.host_waits;
  stream_of(on).run_all();
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t on, cudaEvent_t moment, unsigned) {
  enqueue(on, [moment = *moment] {
    if (moment.on) moment.on->run_until(moment.number);
  });
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* made, unsigned) { return *made = new event, cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t moment, cudaStream_t on) {
  *moment = {stream_of(on).shared_from_this(), stream_of(on).enqueued()};
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t moment) {
  ++counters.host_waits;
  if (moment->on) moment->on->run_until(moment->number);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t moment) { return delete moment, cudaSuccess; }

cudaError_t cudaStreamIsCapturing(cudaStream_t on, cudaStreamCaptureStatus* status) {
  *status = stream_of(on).capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t on, cudaStreamCaptureMode) {
  stream_of(on).capture = std::make_unique<graph>();
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t on, cudaGraph_t* made) {
  return *made = stream_of(on).capture.release(), cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t from, unsigned long long) {
  return *made = new graph(*from), cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t what, cudaStream_t on) {
  for (const auto& work : what->work) enqueue(on, work);
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t what) { return delete what, cudaSuccess; }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t what) { return delete what, cudaSuccess; }

cudaError_t cudaMalloc(void** made, std::size_t bytes) {
  if (broken) return cudaErrorMemoryAllocation;
  ++counters.allocations;
  *made = device_memory().allocate(bytes);
  return *made ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaFree(void* memory) {
  if (!memory) return cudaSuccess;
  cudaDeviceSynchronize();
  device_memory().release(memory);
  return cudaSuccess;
}
cudaError_t cudaMallocAsync(void** made, std::size_t bytes, cudaStream_t on) {
  if (stream_of(on).capture) return cudaErrorStreamCaptureUnsupported;  // stricter than a device
  return cudaMalloc(made, bytes);
}
cudaError_t cudaFreeAsync(void* memory, cudaStream_t on) {
  enqueue(on, [memory] { device_memory().release(memory); });
  return cudaSuccess;
}
cudaError_t cudaMallocHost(void** made, std::size_t bytes) {
  if (broken) return cudaErrorMemoryAllocation;
  ++counters.allocations;
  *made = allocate_pinned(bytes);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  if (!memory) return cudaSuccess;
  cudaDeviceSynchronize();
  release_pinned(memory);
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  cudaDeviceSynchronize();
  const arena::running here(device_memory());
  if (bytes > 0) std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t on) {
  if (bytes == 0) return cudaSuccess;
  const bool staged = is_pageable(from), waits = is_pageable(to);
  if ((staged || waits) && stream_of(on).capture)
    return cudaErrorStreamCaptureUnsupported;  // a graph must not refer to it
  if (staged) {
    std::vector<std::byte> copy(bytes);
    std::memcpy(copy.data(), from, bytes);
    enqueue(on, [to, copy = std::move(copy)] { std::memcpy(to, copy.data(), copy.size()); });
  } else {
    enqueue(on, [=] { std::memcpy(to, from, bytes); });
  }
  return waits ? cudaStreamSynchronize(on) : cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* found, const void* address) {
  *found = {device_memory().holds(address) ? cudaMemoryTypeDevice
            : is_pinned(address)           ? cudaMemoryTypeHost
                                           : cudaMemoryTypeUnregistered,
            0};
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* found, const void*) { return *found = {1024}, cudaSuccess; }
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int, std::size_t) {
  return *blocks = 2, cudaSuccess;
}
