// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <span>

#include "../../core/message.hpp"

namespace adasum::detail {

/// Every rank's block to all ranks, for any number of them, in ⌈log₂P⌉ exchanges (Bruck et al., 1997). One exchange
/// after another, so that the caller may do something else while one is in flight.
class allgather {
 public:
  allgather() = default;
  /// @param mine    this rank's block; it is copied
  /// @param blocks  size × mine.size() bytes: at the end that of rank r, at r × mine.size()
  allgather(std::span<const std::byte> mine, int rank, int size, std::span<std::byte> blocks)
      : self_(static_cast<std::size_t>(rank)),
        count_(static_cast<std::size_t>(size)),
        width_(mine.size()),
        blocks_(blocks) {
    std::ranges::copy(mine, blocks_.begin());  // for now, block i is that of rank (self + i) mod count
  }

  /// Appends the messages of the next exchange. @return whether there is one; otherwise all blocks are there
  template <class Out, class In>
  bool next(Out& out, In& in) {
    if (have_ < count_) {
      const auto have = have_, more = std::min(have, count_ - have);
      have_ *= 2;
      out.push_back({static_cast<int>((self_ + count_ - have) % count_), blocks_.first(more * width_)});
      in.push_back({static_cast<int>((self_ + have) % count_), blocks_.subspan(have * width_, more * width_)});
      return true;
    }
    // clang 14 does not accept std::ranges::rotate of libstdc++ 12.
    std::rotate(blocks_.begin(), blocks_.begin() + static_cast<std::ptrdiff_t>((count_ - self_) % count_ * width_),
                blocks_.end());
    return false;
  }

 private:
  std::size_t self_ = 0, count_ = 1, width_ = 0, have_ = 1;
  std::span<std::byte> blocks_;
};

}  // namespace adasum::detail
