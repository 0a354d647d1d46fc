// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cuda_runtime.h>

#include <cstddef>
#include <utility>

#include "device.hpp"

namespace adasum::detail::cuda {

/// Memory of a device in the order of a stream: uninitialised, allocated and freed without waiting (cudaMallocAsync).
/// The stream must live longer.
template <class T>
class buffer {
 public:
  buffer() = default;
  /// @throws cuda_error
  buffer(std::size_t count, cudaStream_t stream, int device) : count_(count), stream_(stream), device_(device) {
    if (count == 0) return;
    const device_scope here(device);
    void* memory = nullptr;
    check("cudaMallocAsync", cudaMallocAsync(&memory, count * sizeof(T), stream));
    data_ = static_cast<T*>(memory);
  }
  buffer(buffer&& other) noexcept { swap(other); }
  buffer& operator=(buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~buffer() {
    int before = 0;
    if (!data_ || cudaGetDevice(&before) != cudaSuccess) return;  // at the end of the program there may be no runtime
    if (before != device_) static_cast<void>(cudaSetDevice(device_));
    if (cudaFreeAsync(data_, stream_) != cudaSuccess) static_cast<void>(cudaGetLastError());
    if (before != device_) static_cast<void>(cudaSetDevice(before));
  }

  T* data() const { return data_; }
  std::size_t size() const { return count_; }

 private:
  void swap(buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    std::swap(stream_, other.stream_);
    std::swap(device_, other.device_);
  }

  T* data_ = nullptr;
  std::size_t count_ = 0;
  cudaStream_t stream_ = nullptr;
  int device_ = 0;
};

/// Memory in no stream's order. @tparam Memory  static allocate(void**, bytes) and free(void*), of the CUDA runtime
template <class T, class Memory>
class unordered_buffer {
 public:
  unordered_buffer() = default;
  /// Waits for the device. @throws cuda_error
  explicit unordered_buffer(std::size_t count) : count_(count) {
    if (count == 0) return;
    void* memory = nullptr;
    check(Memory::name, Memory::allocate(&memory, count * sizeof(T)));
    data_ = static_cast<T*>(memory);
  }
  unordered_buffer(unordered_buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  unordered_buffer& operator=(unordered_buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }
  ~unordered_buffer() {
    if (data_ && Memory::free(data_) != cudaSuccess) static_cast<void>(cudaGetLastError());
  }

  T* data() const { return data_; }
  std::size_t size() const { return count_; }

 private:
  T* data_ = nullptr;
  std::size_t count_ = 0;
};

/// Of the current device, such that message layers can share it between processes.
struct device_memory {
  static constexpr const char* name = "cudaMalloc";
  static cudaError_t allocate(void** memory, std::size_t bytes) { return cudaMalloc(memory, bytes); }
  static cudaError_t free(void* memory) { return cudaFree(memory); }
};
template <class T>
using shareable_buffer = unordered_buffer<T, device_memory>;

/// Of the host, page-locked: a device copies from and to it by itself.
struct pinned_memory {
  static constexpr const char* name = "cudaMallocHost";
  static cudaError_t allocate(void** memory, std::size_t bytes) { return cudaMallocHost(memory, bytes); }
  static cudaError_t free(void* memory) { return cudaFreeHost(memory); }
};
template <class T>
using pinned_buffer = unordered_buffer<T, pinned_memory>;

/// A moment on a stream, for which the host can wait. Made when it is recorded first, on the device that is current
/// then.
class event {
 public:
  event() = default;
  event(event&& other) noexcept : native_(std::exchange(other.native_, nullptr)) {}
  event& operator=(event&& other) noexcept {
    std::swap(native_, other.native_);
    return *this;
  }
  ~event() {
    if (native_ && cudaEventDestroy(native_) != cudaSuccess) static_cast<void>(cudaGetLastError());
  }

  /// @throws cuda_error
  void record(cudaStream_t stream) {
    if (!native_) check("cudaEventCreateWithFlags", cudaEventCreateWithFlags(&native_, cudaEventDisableTiming));
    check("cudaEventRecord", cudaEventRecord(native_, stream));
  }
  /// Blocks until all that stood before the moment has ended; not at all if it was never recorded.
  void wait() const {
    if (native_) check("cudaEventSynchronize", cudaEventSynchronize(native_));
  }

 private:
  cudaEvent_t native_ = nullptr;
};

}  // namespace adasum::detail::cuda
