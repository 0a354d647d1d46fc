// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <adasum/core/scalar.hpp>
#include <adasum/detail/references/erased.hpp>
#include <adasum/detail/references/space_ref.hpp>

/// What nvcc compiles of adasum.torch: cuda_space, without any header of PyTorch's.
namespace adasum::python {

const adasum::detail::space_table& table_of_cuda(number_format format);
/// @param stream  a cudaStream_t @param device  its number
adasum::detail::owned_object cuda_space_on(void* stream, int device);

}  // namespace adasum::python
