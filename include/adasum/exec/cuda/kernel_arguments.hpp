// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "device.hpp"

/// A few numbers or addresses for the device, sent as the arguments of a kernel: the caller may reuse their memory when
/// the call returns, nothing waits, and a recorded graph holds them too. Copies from ordinary memory promise none of
/// that.
namespace adasum::detail::cuda {

/// Numbers or addresses of 64 bits, as many as one launch takes.
struct argument_values {
  static constexpr std::size_t most = 256;
  std::uint64_t at[most];
};

template <int = 0>
__global__ void write_arguments(const __grid_constant__ argument_values values, int count, std::uint64_t* to) {
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) to[i] = values.at[i];
}

/// Enqueues to[i] = values[i]; a launch for every 256. @tparam Value  double, or an address
template <class Value>
void write_by_arguments(std::span<const Value> values, Value* to, cudaStream_t stream) {
  static_assert(sizeof(Value) == sizeof(std::uint64_t));
  constexpr auto most = argument_values::most;
  for (std::size_t first = 0; first < values.size(); first += most) {
    const auto some = values.subspan(first, std::min(most, values.size() - first));
    argument_values list{};
    std::transform(some.begin(), some.end(), list.at, [](Value value) { return std::bit_cast<std::uint64_t>(value); });
    launch("write_arguments", write_arguments<>, {1, 64}, stream, list, static_cast<int>(some.size()),
           reinterpret_cast<std::uint64_t*>(to + first));
  }
}

}  // namespace adasum::detail::cuda
