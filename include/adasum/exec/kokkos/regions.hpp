// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <Kokkos_Core.hpp>

#include <cstddef>

#include "../../core/tracing.hpp"

namespace adasum {

/// For set_tracer(), between Kokkos::initialize and Kokkos::finalize: the steps of reductions as regions of Kokkos, which the
/// tool that KOKKOS_TOOLS_LIBS names shows.
inline const tracer* kokkos_tracer() {
  static constexpr tracer regions{[](const char* step, std::size_t) noexcept { Kokkos::Profiling::pushRegion(step); },
                                  []() noexcept { Kokkos::Profiling::popRegion(); }};
  return &regions;
}

}  // namespace adasum
