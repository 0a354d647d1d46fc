// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cuda_runtime.h>

#include <cstddef>
#include <memory>
#include <type_traits>

#include "device.hpp"

/// Memory and events, freed with their last owner. What fails then cannot be reported: the device has failed before.
namespace adasum::detail::cuda {

/// Memory of a device in the order of a stream: uninitialised, allocated and freed without waiting (cudaMallocAsync).
/// The stream must live longer.
template <class T>
class buffer {
 public:
  buffer() = default;
  /// @throws cuda_error
  buffer(std::size_t count, cudaStream_t stream, int device) : data_(nullptr, freed_in_order{stream, device}), count_(count) {
    if (count == 0) return;
    const device_scope here(device);
    void* memory = nullptr;
    check("cudaMallocAsync", cudaMallocAsync(&memory, count * sizeof(T), stream));
    data_.reset(static_cast<T*>(memory));
  }

  T* data() const { return data_.get(); }
  std::size_t size() const { return count_; }

 private:
  struct freed_in_order {
    cudaStream_t stream;
    int device;

    void operator()(T* memory) const {
      int before = 0;
      if (cudaGetDevice(&before) != cudaSuccess) return;  // at the end of the program there may be no runtime
      if (before != device) static_cast<void>(cudaSetDevice(device));
      if (cudaFreeAsync(memory, stream) != cudaSuccess) static_cast<void>(cudaGetLastError());
      if (before != device) static_cast<void>(cudaSetDevice(before));
    }
  };

  std::unique_ptr<T, freed_in_order> data_;
  std::size_t count_ = 0;
};

/// Memory in no stream's order: of the current device, such that message layers can share it between processes; or of the
/// host, page-locked, so that a device copies from and to it by itself.
template <class T, bool OfHost>
class unordered_buffer {
 public:
  unordered_buffer() = default;
  /// Waits for the device. @throws cuda_error
  explicit unordered_buffer(std::size_t count) : count_(count) {
    if (count == 0) return;
    void* memory = nullptr;
    if constexpr (OfHost)
      check("cudaMallocHost", cudaMallocHost(&memory, count * sizeof(T)));
    else
      check("cudaMalloc", cudaMalloc(&memory, count * sizeof(T)));
    data_.reset(static_cast<T*>(memory));
  }

  T* data() const { return data_.get(); }
  std::size_t size() const { return count_; }

 private:
  struct freed {
    void operator()(T* memory) const {
      if ((OfHost ? cudaFreeHost(memory) : cudaFree(memory)) != cudaSuccess) static_cast<void>(cudaGetLastError());
    }
  };

  std::unique_ptr<T, freed> data_;
  std::size_t count_ = 0;
};
template <class T>
using shareable_buffer = unordered_buffer<T, false>;
template <class T>
using pinned_buffer = unordered_buffer<T, true>;

/// A moment on a stream, for which the host can wait. Made when it is recorded first, on the device that is current
/// then.
class event {
 public:
  /// @throws cuda_error
  void record(cudaStream_t stream) {
    if (!native_) {
      cudaEvent_t made = nullptr;
      check("cudaEventCreateWithFlags", cudaEventCreateWithFlags(&made, cudaEventDisableTiming));
      native_.reset(made);
    }
    check("cudaEventRecord", cudaEventRecord(native_.get(), stream));
  }
  /// Blocks until all that stood before the moment has ended; not at all if it was never recorded.
  void wait() const {
    if (native_) check("cudaEventSynchronize", cudaEventSynchronize(native_.get()));
  }

 private:
  struct destroyed {
    void operator()(cudaEvent_t native) const {
      if (cudaEventDestroy(native) != cudaSuccess) static_cast<void>(cudaGetLastError());
    }
  };
  std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, destroyed> native_;
};

}  // namespace adasum::detail::cuda
