// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <cuda_runtime.h>
#include <string>
#include <utility>

#include "../../core/error.hpp"

/// Errors of CUDA; devices, streams, launches.
namespace adasum {

/// A call of the CUDA runtime failed, or a kernel before it did: errors of kernels are reported by later calls.
class cuda_error : public error {
 public:
  /// @param call  the function that failed; @param code  what it returned
  cuda_error(const char* call, cudaError_t code)
      : error(std::string("adasum: ") + call + " failed: " + cudaGetErrorString(code) + " (" + cudaGetErrorName(code) +
              ")"),
        call_(call),
        code_(code) {}

  /// The name of the function that failed, such as "cudaMallocAsync".
  const char* call() const { return call_; }
  /// The error code that it returned.
  cudaError_t code() const { return code_; }

 private:
  const char* call_;
  cudaError_t code_;
};

namespace detail::cuda {

inline void check(const char* call, cudaError_t code) {
  if (code == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // or the next call, of whoever, would report it again
  throw cuda_error(call, code);
}

inline int current_device() {
  int device = 0;
  check("cudaGetDevice", cudaGetDevice(&device));
  return device;
}

/// Makes a device the current one, until the end of the scope.
class device_scope {
 public:
  explicit device_scope(int device) : before_(current_device()), device_(device) {
    if (before_ != device_) check("cudaSetDevice", cudaSetDevice(device_));
  }
  device_scope(const device_scope&) = delete;
  device_scope& operator=(const device_scope&) = delete;
  ~device_scope() {
    if (before_ != device_) static_cast<void>(cudaSetDevice(before_));
  }

 private:
  int before_, device_;
};

inline int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  check("cudaDeviceGetAttribute", cudaDeviceGetAttribute(&value, which, device));
  return value;
}

/// Whether what is done on the stream is being recorded in a graph instead of run.
inline bool is_capturing(cudaStream_t stream) {
  auto status = cudaStreamCaptureStatusNone;
  check("cudaStreamIsCapturing", cudaStreamIsCapturing(stream, &status));
  return status != cudaStreamCaptureStatusNone;
}

/// How a kernel is launched.
struct launch_shape {
  std::size_t blocks;
  unsigned threads;
  std::size_t shared_bytes = 0;  ///< dynamic shared memory of one block
  bool cooperative = false;      ///< all blocks at once, so that they can wait for each other
};

/// Enqueues kernel(arguments…); no blocks are nothing to do. @return what the runtime said
/// @throws bad_input  more blocks than a launch can have
template <class... Parameters, class... Arguments>
cudaError_t try_launch(void (*kernel)(Parameters...), const launch_shape& shape, cudaStream_t stream,
                       Arguments&&... arguments) {
  constexpr std::size_t most_blocks = (std::size_t{1} << 31) - 1;
  if (shape.blocks == 0) return cudaSuccess;
  if (shape.blocks > most_blocks)
    throw bad_input("adasum::cuda_space: " + std::to_string(shape.blocks) +
                    " blocks are needed, and a launch has at most " + std::to_string(most_blocks) +
                    ": combine fewer vectors or fewer segments at once");
  cudaLaunchAttribute cooperative{};
  cooperative.id = cudaLaunchAttributeCooperative;
  cooperative.val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(shape.blocks));
  config.blockDim = dim3(shape.threads);
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream;
  config.attrs = &cooperative;
  config.numAttrs = shape.cooperative ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
}

/// The same. @param name for the error @throws cuda_error if the launch fails
template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), const launch_shape& shape, cudaStream_t stream,
            Arguments&&... arguments) {
  check(name, try_launch(kernel, shape, stream, std::forward<Arguments>(arguments)...));
}

}  // namespace detail::cuda
}  // namespace adasum
