// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <thrust/device_vector.h>
#include <thrust/memory.h>

#include <span>

#include "../../core/gradient.hpp"

namespace adasum {

/// A thrust::device_vector is a gradient as it is. Device memory from elsewhere: std::span(pointer, count).
template <class T, class Allocator>
struct gradient_traits<thrust::device_vector<T, Allocator>> {
  /// Its elements, in memory of the device.
  static std::span<T> span(thrust::device_vector<T, Allocator>& v) {
    return {thrust::raw_pointer_cast(v.data()), v.size()};
  }
  /// The same, to be read.
  static std::span<const T> span(const thrust::device_vector<T, Allocator>& v) {
    return {thrust::raw_pointer_cast(v.data()), v.size()};
  }
};

}  // namespace adasum
