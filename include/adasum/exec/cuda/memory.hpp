// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <utility>

#include "device.hpp"
#include "error.hpp"

namespace adasum::cuda_backend {

/// Memory of a device in the order of a stream: uninitialised, allocated and freed without waiting (cudaMallocAsync). The
/// stream must live longer.
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

/// Memory of a device that belongs to no stream's order (cudaMalloc), which message layers can share between processes. Allocating
/// and freeing it wait for the device.
template <class T>
class shareable_buffer {
 public:
  shareable_buffer() = default;
  /// @throws cuda_error
  shareable_buffer(std::size_t count, int device) : count_(count) {
    if (count == 0) return;
    const device_scope here(device);
    void* memory = nullptr;
    check("cudaMalloc", cudaMalloc(&memory, count * sizeof(T)));
    data_ = static_cast<T*>(memory);
  }
  shareable_buffer(shareable_buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  shareable_buffer& operator=(shareable_buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }
  ~shareable_buffer() {
    if (data_ && cudaFree(data_) != cudaSuccess) static_cast<void>(cudaGetLastError());
  }

  T* data() const { return data_; }
  std::size_t size() const { return count_; }

 private:
  T* data_ = nullptr;
  std::size_t count_ = 0;
};

/// Memory of the host that a device copies from and to by itself (page-locked). Allocating it waits for the device.
template <class T>
class pinned_buffer {
 public:
  pinned_buffer() = default;
  /// @throws cuda_error
  explicit pinned_buffer(std::size_t count) : count_(count) {
    if (count == 0) return;
    void* memory = nullptr;
    check("cudaMallocHost", cudaMallocHost(&memory, count * sizeof(T)));
    data_ = static_cast<T*>(memory);
  }
  pinned_buffer(pinned_buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  pinned_buffer& operator=(pinned_buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }
  ~pinned_buffer() {
    if (data_ && cudaFreeHost(data_) != cudaSuccess) static_cast<void>(cudaGetLastError());
  }

  T* data() const { return data_; }
  std::size_t size() const { return count_; }

 private:
  T* data_ = nullptr;
  std::size_t count_ = 0;
};

/// A moment on a stream, for which the host can wait. Made when it is recorded first, on the device that is current then.
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

}  // namespace adasum::cuda_backend
