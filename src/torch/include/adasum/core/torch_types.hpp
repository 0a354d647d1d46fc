// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <adasum/core/config.hpp>

#include <ATen/ATen.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <cstddef>
#include <cstdint>

#include <adasum/core/scalar.hpp>

/// PyTorch's element types, and tensors over memory.
namespace adasum {

/// @cond internal
template <>
struct scalar_traits<c10::Half> : stored_as<number_format::binary16> {};
template <>
struct scalar_traits<c10::BFloat16> : stored_as<number_format::bfloat16> {};
/// @endcond

namespace detail {

template <scalar T>
constexpr at::ScalarType torch_type() {
  switch (format_of<T>) {
    case number_format::binary64: return at::kDouble;
    case number_format::binary32: return at::kFloat;
    case number_format::binary16: return at::kHalf;
    case number_format::bfloat16: return at::kBFloat16;
  }
  return at::kFloat;
}

/// A tensor over memory that somebody else owns, of that device and type.
inline at::Tensor tensor_over(const void* elements, std::size_t count, const at::TensorOptions& options) {
  return at::for_blob(const_cast<void*>(elements), {static_cast<std::int64_t>(count)})
      .options(options)
      .target_device(options.device())
      .make_tensor();
}

}  // namespace detail

}  // namespace adasum
