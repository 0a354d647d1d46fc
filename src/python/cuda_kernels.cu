// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cuda_kernels.hpp"

#include <adasum/exec/cuda.hpp>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace adasum::python {

const adasum::detail::space_table& table_of_cuda(number_format format) {
  using adasum::detail::table_of_space;
  switch (format) {
    case number_format::binary64: return table_of_space<double, cuda_space>;
    case number_format::binary32: return table_of_space<float, cuda_space>;
    case number_format::binary16: return table_of_space<__half, cuda_space>;
    default: return table_of_space<__nv_bfloat16, cuda_space>;
  }
}

adasum::detail::owned_object cuda_space_on(void* stream, int device) {
  return adasum::detail::own(cuda_space(static_cast<cudaStream_t>(stream), device));
}

}  // namespace adasum::python
