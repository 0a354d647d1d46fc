// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/exec/serial/kernels.hpp>
#include <adasum/exec/serial/tables.hpp>
#include <adasum/exec/serial/windows.hpp>

namespace adasum::detail::serial {
template struct kernel_tables<number_format::binary64>;
template struct kernel_tables<number_format::binary32>;
template struct kernel_tables<number_format::binary16>;
template struct kernel_tables<number_format::bfloat16>;
template struct windows<>;
}  // namespace adasum::detail::serial
