// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// The part of the CUDA runtime that this library uses, for a host compiler. ../README.md says what it promises.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <tuple>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __launch_bounds__(...)
#define __grid_constant__
// One operating system's thread runs one block at a time. constinit: there is nothing to run before the first use.
#define __shared__ constinit thread_local

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned vx = 1, unsigned vy = 1, unsigned vz = 1) : x(vx), y(vy), z(vz) {}
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;
void __syncthreads();
inline double __longlong_as_double(long long bits) {
  double x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorCooperativeLaunchTooLarge = 720,
  cudaErrorStreamCaptureUnsupported = 900,
};
const char* cudaGetErrorName(cudaError_t);
const char* cudaGetErrorString(cudaError_t);
cudaError_t cudaGetLastError();

enum cudaDeviceAttr {
  cudaDevAttrMultiProcessorCount,
  cudaDevAttrCooperativeLaunch,
  cudaDevAttrMaxSharedMemoryPerMultiprocessor,
  cudaDevAttrMaxSharedMemoryPerBlockOptin,
  cudaDevAttrReservedSharedMemoryPerBlock,
  cudaDevAttrPageableMemoryAccess,
};
cudaError_t cudaGetDevice(int*);
cudaError_t cudaSetDevice(int);
cudaError_t cudaGetDeviceCount(int*);
cudaError_t cudaDeviceGetAttribute(int*, cudaDeviceAttr, int device);
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer);
cudaError_t cudaDeviceSynchronize();

namespace emulated_cuda {
class stream;
class graph;
struct event;
}  // namespace emulated_cuda
using cudaStream_t = emulated_cuda::stream*;
using cudaEvent_t = emulated_cuda::event*;
using cudaGraph_t = emulated_cuda::graph*;
using cudaGraphExec_t = emulated_cuda::graph*;

cudaError_t cudaStreamCreate(cudaStream_t*);
cudaError_t cudaStreamDestroy(cudaStream_t);
cudaError_t cudaStreamSynchronize(cudaStream_t);
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned flags = 0);

enum { cudaEventDefault = 0, cudaEventDisableTiming = 2 };
cudaError_t cudaEventCreateWithFlags(cudaEvent_t*, unsigned);
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t);
cudaError_t cudaEventSynchronize(cudaEvent_t);
cudaError_t cudaEventDestroy(cudaEvent_t);

enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone, cudaStreamCaptureStatusActive };
enum cudaStreamCaptureMode { cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal };
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus*);
cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode);
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t*);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t*, cudaGraph_t, unsigned long long flags = 0);
cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t);
cudaError_t cudaGraphDestroy(cudaGraph_t);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t);

cudaError_t cudaMalloc(void**, std::size_t);
cudaError_t cudaFree(void*);
cudaError_t cudaMallocAsync(void**, std::size_t, cudaStream_t);
cudaError_t cudaFreeAsync(void*, cudaStream_t);
cudaError_t cudaMallocHost(void**, std::size_t);
cudaError_t cudaFreeHost(void*);
enum cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault
};
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t, cudaMemcpyKind);
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t, cudaMemcpyKind, cudaStream_t);

enum cudaMemoryType { cudaMemoryTypeUnregistered, cudaMemoryTypeHost, cudaMemoryTypeDevice, cudaMemoryTypeManaged };
struct cudaPointerAttributes {
  cudaMemoryType type;
  int device;
};
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes*, const void*);

struct cudaFuncAttributes {
  std::size_t sharedSizeBytes;
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, const void* kernel);
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute, int);
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int*, const void* kernel, int threads,
                                                          std::size_t shared_bytes);

enum cudaLaunchAttributeID { cudaLaunchAttributeCooperative = 2 };
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  struct {
    int cooperative;
  } val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute* attrs;
  unsigned numAttrs;
};

namespace emulated_cuda {
cudaError_t enqueue_kernel(const cudaLaunchConfig_t&, std::function<void()> thread);
}

template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments));
  // Arguments are copied when a kernel is launched; every thread then has a copy of its own.
  return emulated_cuda::enqueue_kernel(
      *config, [kernel, copies = std::tuple<std::decay_t<Parameters>...>(std::forward<Arguments>(arguments)...)] {
        std::apply(kernel, copies);
      });
}
