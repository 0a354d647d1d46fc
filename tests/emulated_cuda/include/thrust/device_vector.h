// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "../cuda_runtime.h"
#include "memory.h"

namespace thrust {

template <class T, class Allocator = std::allocator<T>>
class device_vector {
 public:
  device_vector() = default;
  explicit device_vector(std::size_t size) : size_(size) { allocate(); }
  template <class Iterator>
  device_vector(Iterator first, Iterator last) {
    const std::vector<T> host(first, last);
    size_ = host.size();
    allocate();
    cudaMemcpy(data_, host.data(), size_ * sizeof(T), cudaMemcpyHostToDevice);
  }
  device_vector(const device_vector&) = delete;
  device_vector& operator=(const device_vector&) = delete;
  ~device_vector() { cudaFree(data_); }

  std::size_t size() const { return size_; }
  device_ptr<T> data() { return {data_}; }
  device_ptr<const T> data() const { return {data_}; }

 private:
  void allocate() {
    void* memory = nullptr;
    if (size_ > 0) cudaMalloc(&memory, size_ * sizeof(T));
    data_ = static_cast<T*>(memory);
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace thrust
