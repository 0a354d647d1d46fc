// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <adasum/core/config.hpp>

#include <cstddef>
#include <span>
#include <vector>

#include <adasum/core/message.hpp>
#include "messages.hpp"

namespace adasum::detail::c10d {

/// What each rank tells all others in one exchange: a few bytes. Allocates when it is made, and not later.
template <class Note>
class notes {
 public:
  notes(int rank, int size) : all_(static_cast<std::size_t>(size)), rank_(static_cast<std::size_t>(rank)) {
    for (int peer = 0; peer < size; ++peer) {
      if (peer == rank) continue;
      out_.push_back({peer, std::as_bytes(std::span(&own(), 1))});
      in_.push_back({peer, std::as_writable_bytes(std::span(&all_[static_cast<std::size_t>(peer)], 1))});
    }
  }
  notes(const notes&) = delete;
  notes& operator=(const notes&) = delete;

  Note& own() { return all_[rank_]; }
  /// Collective; blocks. @return the note of each rank
  const std::vector<Note>& tell(messages& exchanges) {
    exchanges.exchange(out_, in_);
    return all_;
  }

 private:
  std::vector<Note> all_;
  std::size_t rank_;
  std::vector<outgoing> out_;
  std::vector<incoming> in_;
};

}  // namespace adasum::detail::c10d
