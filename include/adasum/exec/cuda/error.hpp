// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cuda_runtime.h>

#include <string>

#include "../../core/error.hpp"

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

}  // namespace detail::cuda
}  // namespace adasum
