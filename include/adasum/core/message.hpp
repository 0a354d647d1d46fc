// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <cstddef>
#include <cstring>
#include <span>

namespace adasum {

/// Where the bytes of a message lie.
enum class memory_kind {
  space,  ///< in memory of the execution space
  host,   ///< in ordinary memory of the host
};

/// Bytes for another rank.
struct outgoing {
  int peer;                               ///< the rank that gets it
  std::span<const std::byte> bytes;       ///< what is sent
  memory_kind where = memory_kind::host;  ///< where the bytes lie
  /// Send an empty message instead of the bytes: this rank has failed, and the receiver must not wait for it.
  bool withheld = false;
};

/// A buffer for bytes from another rank.
struct incoming {
  int peer;                               ///< the rank that sends it
  std::span<std::byte> bytes;             ///< where it is written
  memory_kind where = memory_kind::host;  ///< where that lies
  /// Receive the message but do not write it to `bytes`: this rank has failed. (Only for memory of a device_space.)
  bool discarded = false;
};

namespace detail {

/// All at once: std::ranges::copy of bytes that are constant is a loop over each of them in libstdc++ 12, and takes ten times
/// as long.
inline void copy_bytes(std::span<const std::byte> from, std::byte* to) {
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
}

}  // namespace detail

}  // namespace adasum
