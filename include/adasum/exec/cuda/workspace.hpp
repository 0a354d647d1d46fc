// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "../../core/error.hpp"
#include "device.hpp"
#include "memory.hpp"
#include "tile_tables.hpp"

namespace adasum::detail::cuda {

/// Memory that only grows, so that after the first calls nothing is allocated.
class growing_buffer {
 public:
  /// @throws bad_input  it would have to grow while the stream is being recorded in a graph
  double* at_least(std::size_t count, cudaStream_t stream, int device) {
    const bool capturing = is_capturing(stream);
    if (count > memory_.size()) {
      if (capturing)
        throw bad_input(
            "adasum::cuda_space: a graph can record only calls that need no new memory: make the same call once "
            "before the capture");
      buffer<double> larger(std::max(count, 2 * memory_.size()), stream, device);
      if (in_graph_) retired_.push_back(std::move(memory_));
      memory_ = std::move(larger);
      in_graph_ = false;
    }
    in_graph_ |= capturing;
    return memory_.data();
  }

 private:
  buffer<double> memory_;
  bool in_graph_ = false;                // a recorded graph refers to memory_
  std::vector<buffer<double>> retired_;  // what recorded graphs refer to
};

/// What a kernel that runs cooperatively can count on.
struct cooperative_limits {
  std::size_t blocks = 0;        ///< at the same time on the device; 0: none
  std::size_t shared_bytes = 0;  ///< dynamic shared memory of each
};

/// What the calls on one stream keep between them.
struct workspace {
  tile_tables tables;
  growing_buffer partials, gram, weights, trees, addresses;
  pinned_buffer<double> host_gram;
  std::map<const void*, cooperative_limits> limits;  // by kernel

  double* host_scratch(std::size_t count) {
    if (count > host_gram.size()) host_gram = pinned_buffer<double>(std::max(count, 2 * host_gram.size()));
    return host_gram.data();
  }

  /// @param resident_blocks  so many blocks are to share a multiprocessor's memory
  template <class Kernel>
  cooperative_limits limits_of(Kernel* kernel, unsigned threads, unsigned resident_blocks, int device) {
    const auto key = reinterpret_cast<const void*>(kernel);
    if (const auto known = limits.find(key); known != limits.end()) return known->second;
    cooperative_limits found;
    if (attribute(cudaDevAttrCooperativeLaunch, device) != 0) {
      cudaFuncAttributes kernel_has{};
      check("cudaFuncGetAttributes", cudaFuncGetAttributes(&kernel_has, key));
      const auto value = [&](cudaDeviceAttr which) { return static_cast<std::size_t>(attribute(which, device)); };
      const auto share = value(cudaDevAttrMaxSharedMemoryPerMultiprocessor) / resident_blocks -
                         value(cudaDevAttrReservedSharedMemoryPerBlock);
      const auto most = std::min(share, value(cudaDevAttrMaxSharedMemoryPerBlockOptin));
      found.shared_bytes = most > kernel_has.sharedSizeBytes ? most - kernel_has.sharedSizeBytes : 0;
      check("cudaFuncSetAttribute", cudaFuncSetAttribute(key, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                         static_cast<int>(found.shared_bytes)));
      int resident = 0;
      check(
          "cudaOccupancyMaxActiveBlocksPerMultiprocessor",
          cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, key, static_cast<int>(threads), found.shared_bytes));
      found.blocks = static_cast<std::size_t>(resident) * value(cudaDevAttrMultiProcessorCount);
    }
    return limits.emplace(key, found).first->second;
  }
};

}  // namespace adasum::detail::cuda
