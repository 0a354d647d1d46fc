// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "core/config.hpp"

#include <ATen/ATen.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/scalar.hpp"

/// PyTorch's tensors as gradients.
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

inline void require_elements_in_a_row(const at::Tensor& tensor, const char* call) {
  const auto refuse = [&](const std::string& why) { throw bad_input(std::string(call) + ": " + why); };
  if (!tensor.defined()) refuse("the tensor is undefined");
  if (tensor.layout() != at::kStrided) refuse("the tensor is not dense; give it tensor.to_dense()");
  if (!tensor.is_non_overlapping_and_dense())
    refuse("the tensor has gaps between its elements, or elements that share memory; give it tensor.contiguous()");
}

}  // namespace detail

/// The elements of a tensor without gaps, in the order in which they lie in memory, on whatever device that is. A gradient
/// for all calls.
/// @throws bad_input  another element type, gaps between elements, or no tensor at all
template <scalar T>
std::span<T> elements(const at::Tensor& tensor) {
  constexpr auto call = "adasum::elements";
  detail::require_elements_in_a_row(tensor, call);
  if (tensor.scalar_type() != detail::torch_type<T>())
    throw bad_input(std::string(call) + ": the tensor holds " + c10::toString(tensor.scalar_type()) + ", not " +
                    c10::toString(detail::torch_type<T>()));
  return {static_cast<T*>(tensor.data_ptr()), static_cast<std::size_t>(tensor.numel())};
}

/// Calls visitor(span) with the tensor's elements, as a span of double, float, c10::Half or c10::BFloat16.
/// @return what it returns, the same type for all four
/// @throws bad_input  none of these four, gaps between elements, or no tensor at all
template <class Visitor>
decltype(auto) visit_elements(const at::Tensor& tensor, Visitor&& visitor) {
  detail::require_elements_in_a_row(tensor, "adasum::visit_elements");
  switch (tensor.scalar_type()) {
    case at::kDouble: return std::forward<Visitor>(visitor)(elements<double>(tensor));
    case at::kFloat: return std::forward<Visitor>(visitor)(elements<float>(tensor));
    case at::kHalf: return std::forward<Visitor>(visitor)(elements<c10::Half>(tensor));
    case at::kBFloat16: return std::forward<Visitor>(visitor)(elements<c10::BFloat16>(tensor));
    default:
      throw bad_input(std::string("adasum::visit_elements: the tensor holds ") + c10::toString(tensor.scalar_type()) +
                      "; gradients are Double, Float, Half or BFloat16");
  }
}

}  // namespace adasum
