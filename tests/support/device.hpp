// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <adasum/exec/cuda.hpp>

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "support/doctest_scalars.hpp"

/// What tests of CUDA code need, on a device as on the emulated one.
TYPE_TO_STRING(__half);
TYPE_TO_STRING(__nv_bfloat16);
#define ADASUM_TEST_CUDA_SCALARS double, float, __half, __nv_bfloat16

namespace adasum::test {

class stream {
 public:
  stream() { detail::cuda::check("cudaStreamCreate", cudaStreamCreate(&native_)); }
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;
  ~stream() { static_cast<void>(cudaStreamDestroy(native_)); }
  operator cudaStream_t() const { return native_; }

 private:
  cudaStream_t native_ = nullptr;
};

/// What a call enqueues on a stream, recorded instead of run.
class graph {
 public:
  template <class Call>
  graph(cudaStream_t stream, Call&& call) {
    detail::cuda::check("cudaStreamBeginCapture", cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    call();
    detail::cuda::check("cudaStreamEndCapture", cudaStreamEndCapture(stream, &recorded_));
    detail::cuda::check("cudaGraphInstantiate", cudaGraphInstantiate(&ready_, recorded_, 0));
  }
  graph(const graph&) = delete;
  graph& operator=(const graph&) = delete;
  ~graph() {
    static_cast<void>(cudaGraphExecDestroy(ready_));
    static_cast<void>(cudaGraphDestroy(recorded_));
  }

  void launch(cudaStream_t stream) const { detail::cuda::check("cudaGraphLaunch", cudaGraphLaunch(ready_, stream)); }

 private:
  cudaGraph_t recorded_ = nullptr;
  cudaGraphExec_t ready_ = nullptr;
};

/// An array in memory of the device, `shift` elements behind an address of 256 bytes.
template <scalar T>
class device_array {
 public:
  explicit device_array(const std::vector<T>& values, std::size_t shift = 0) : size_(values.size()), shift_(shift) {
    void* memory = nullptr;
    detail::cuda::check("cudaMalloc", cudaMalloc(&memory, (size_ + shift_ + 1) * sizeof(T)));
    memory_ = static_cast<T*>(memory);
    assign(values);
  }
  device_array(device_array&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), size_(other.size_), shift_(other.shift_) {}
  ~device_array() { static_cast<void>(cudaFree(memory_)); }

  std::span<T> all() const { return {memory_ + shift_, size_}; }
  operator std::span<T>() const { return all(); }
  void assign(const std::vector<T>& values) {
    detail::cuda::check("cudaMemcpy",
                        cudaMemcpy(all().data(), values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  /// Waits for the device.
  std::vector<T> values() const {
    detail::cuda::check("cudaDeviceSynchronize", cudaDeviceSynchronize());
    std::vector<T> copy(size_);
    detail::cuda::check("cudaMemcpy", cudaMemcpy(copy.data(), all().data(), size_ * sizeof(T), cudaMemcpyDeviceToHost));
    return copy;
  }

 private:
  T* memory_ = nullptr;
  std::size_t size_, shift_;
};

template <scalar T>
std::vector<device_array<T>> on_device(const std::vector<std::vector<T>>& vectors, std::size_t shift = 0) {
  std::vector<device_array<T>> arrays;
  for (const auto& vector : vectors) arrays.emplace_back(vector, shift);
  return arrays;
}

template <scalar T>
std::vector<std::span<const T>> spans_of(const std::vector<device_array<T>>& arrays) {
  std::vector<std::span<const T>> spans;
  for (const auto& array : arrays) spans.push_back(array.all());
  return spans;
}

template <scalar T>
std::vector<const T*> addresses_of(const std::vector<device_array<T>>& arrays) {
  std::vector<const T*> addresses;
  for (const auto& array : arrays) addresses.push_back(array.all().data());
  return addresses;
}

}  // namespace adasum::test
