// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <adasum/exec/aten.hpp>

#include "cuda_kernels.hpp"

namespace adasum::python {

/// aten_space whose vectors are measured and mixed by cuda_space's kernels, on the stream that is the current one when this is
/// made. What is seldom needed (gradients that nearly cancel, many vectors of one process) stays PyTorch's.
class compiled_cuda_space : public aten_space {
 public:
  static constexpr std::string_view name = "cuda";

  compiled_cuda_space(at::Device device, const std::string& processor)
      : aten_space(device, processor), kernels_(own_on_current_stream(device)) {}

  template <scalar T>
  void measure(const slice& window, std::span<const T* const> vectors, double* gram) const {
    table_of_cuda(format_of<T>).measure(kernels_.get(), window, untyped(vectors), gram, 0);
  }
  template <scalar T>
  void mix(const slice& window, std::span<const T* const> vectors, const double* weights, T* out) const {
    table_of_cuda(format_of<T>).mix(kernels_.get(), window, untyped(vectors), weights, out, 0);
  }

 private:
  static std::shared_ptr<void> own_on_current_stream(at::Device device) {
    const c10::impl::VirtualGuardImpl guard(device.type());
    return cuda_space_on(guard.getStreamNativeHandle(guard.getStream(device)), device.index());
  }
  /// All pointers to objects have the same representation.
  template <class T>
  static adasum::detail::vector_list untyped(std::span<const T* const> vectors) {
    return {reinterpret_cast<const void* const*>(vectors.data()), vectors.size()};
  }

  std::shared_ptr<void> kernels_;
};

}  // namespace adasum::python
