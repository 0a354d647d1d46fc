// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace adasum::detail::threads {

/// Zeroed memory, the same number of bytes for each rank, on cache lines of their own.
class memory_block {
 public:
  memory_block(std::size_t ranks, std::size_t bytes)
      : stride_((bytes + sizeof(line) - 1) / sizeof(line) * sizeof(line)),
        lines_(std::max<std::size_t>(ranks * stride_ / sizeof(line), 1)) {}
  std::byte* of(std::size_t rank) { return reinterpret_cast<std::byte*>(lines_.data()) + rank * stride_; }
  /// Of each rank.
  std::size_t bytes() const { return stride_; }

 private:
  struct alignas(64) line {
    std::byte bytes[64];
  };
  std::size_t stride_;
  std::vector<line> lines_;
};

}  // namespace adasum::detail::threads
