// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <nvtx3/nvToolsExt.h>

#include <cstddef>

#include "../../core/tracing.hpp"

namespace adasum {

/// For set_tracer(): the steps of reductions as NVTX ranges of their thread, which Nsight Systems shows.
inline const tracer* nvtx_tracer() {
  static constexpr tracer ranges{[](const char* step, std::size_t) noexcept { nvtxRangePushA(step); },
                                 []() noexcept { nvtxRangePop(); }};
  return &ranges;
}

}  // namespace adasum
