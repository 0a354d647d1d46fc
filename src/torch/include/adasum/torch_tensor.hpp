// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <adasum/core/config.hpp>

#include <ATen/ATen.h>
#include <c10/core/DispatchKeySet.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include <adasum/core/error.hpp>
#include <adasum/core/scalar.hpp>
#include <adasum/core/torch_types.hpp>

/// PyTorch's tensors as gradients.
namespace adasum {

namespace detail {

/// What a tensor shows is what its memory holds, apart from strides; it may be on any device.
/// @param but  kinds of tensors that are not refused, although PyTorch computes them when they are read
inline void require_memory(const at::Tensor& tensor, const char* call, c10::DispatchKeySet but = {}) {
  using enum c10::DispatchKey;
  constexpr auto plain =
      c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::autocast_dispatch_keyset | c10::DispatchKeySet(Dense);
  const auto refuse = [&](const std::string& why) { throw bad_input({call, ": ", why}); };
  if (!tensor.defined()) refuse("the tensor is undefined");
  if (tensor.layout() == at::kSparse) refuse("the tensor is not dense; give it tensor.to_dense()");
  switch (const auto kind = (tensor.key_set() - plain - but).highestFunctionalityKey()) {
    case Undefined: break;
    case Conjugate:
      refuse("the tensor is a conjugate that PyTorch has not computed yet; give it tensor.resolve_conj()");
      break;
    case Negative:
      refuse("the tensor is a negative that PyTorch has not computed yet; give it tensor.resolve_neg()");
      break;
    default:
      refuse(joined({"the tensor is not an ordinary dense one, but one of PyTorch's kind ", c10::toString(kind),
                     ", whose elements are not in memory"}));
  }
  if (tensor.layout() != at::kStrided) refuse("the tensor is not dense; give it tensor.to_dense()");
  if (tensor.is_meta()) refuse("the tensor is on the device meta, and so has no elements in memory");
  if (tensor.numel() == 0) return;
  auto last = tensor.storage_offset();
  for (std::int64_t i = 0; i < tensor.dim(); ++i) last += (tensor.size(i) - 1) * tensor.stride(i);
  if (tensor.storage().nbytes() < static_cast<std::size_t>(last + 1) * tensor.itemsize())
    refuse("the tensor's memory is shorter than the tensor, or has been freed");
}

inline void require_elements_in_a_row(const at::Tensor& tensor, const char* call) {
  require_memory(tensor, call);
  if (tensor.is_contiguous()) return;
  throw bad_input(
      {call, ": ",
       (tensor.is_non_overlapping_and_dense()
            ? "the tensor's elements lie in memory in another order than that of its indices; give a view in "
              "which they do not, on all ranks alike, such as tensor.permute({0, 2, 3, 1}) of one that is in "
              "the format ChannelsLast, or tensor.contiguous()"
            : "the tensor has gaps between its elements, or elements that share memory; give it "
              "tensor.contiguous()")});
}

inline std::string name_of_type(const at::Tensor& tensor) {
  return joined({c10::toString(tensor.scalar_type()),
                 tensor.is_complex() ? ", which at::view_as_real(tensor) shows as real numbers" : ""});
}

}  // namespace detail

/// The elements of a contiguous tensor, on whatever device that is. A gradient for all calls. Of complex numbers, they are
/// `elements(at::view_as_real(tensor))`, twice as many.
/// @throws bad_input  another element type, a tensor that is not contiguous, one that PyTorch has not computed yet (a
///                    conjugate, for example) or that has no memory of its own, or no tensor at all
template <scalar T>
std::span<T> elements(const at::Tensor& tensor) {
  constexpr auto call = "adasum::elements";
  detail::require_elements_in_a_row(tensor, call);
  if (tensor.scalar_type() != detail::torch_type<T>())
    throw bad_input(
        {call, ": the tensor holds ", detail::name_of_type(tensor), ", not ", c10::toString(detail::torch_type<T>())});
  return {static_cast<T*>(tensor.data_ptr()), static_cast<std::size_t>(tensor.numel())};
}

/// Calls visitor(span) with the tensor's elements, as a span of double, float, c10::Half or c10::BFloat16.
/// @return what it returns, the same type for all four
/// @throws bad_input  none of these four, or what elements() refuses
template <class Visitor>
decltype(auto) visit_elements(const at::Tensor& tensor, Visitor&& visitor) {
  detail::require_elements_in_a_row(tensor, "adasum::visit_elements");
  switch (tensor.scalar_type()) {
    case at::kDouble: return std::forward<Visitor>(visitor)(elements<double>(tensor));
    case at::kFloat: return std::forward<Visitor>(visitor)(elements<float>(tensor));
    case at::kHalf: return std::forward<Visitor>(visitor)(elements<c10::Half>(tensor));
    case at::kBFloat16: return std::forward<Visitor>(visitor)(elements<c10::BFloat16>(tensor));
    default:
      throw bad_input({"adasum::visit_elements: the tensor holds ", detail::name_of_type(tensor),
                       "; gradients are Double, Float, Half or BFloat16"});
  }
}

}  // namespace adasum
