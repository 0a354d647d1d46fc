// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <span>

namespace adasum {

/// Where the bytes of a message lie.
enum class residence {
  space,  ///< in memory of the execution space
  host,   ///< in ordinary memory of the host
};

/// Bytes for another rank.
struct outgoing {
  int peer;
  std::span<const std::byte> bytes;
  residence where = residence::host;
  /// Send empty messages in place of the bytes: this rank has failed, and the receiver is not to wait for it.
  bool withheld = false;
};

/// Room for bytes from another rank.
struct incoming {
  int peer;
  std::span<std::byte> bytes;
  residence where = residence::host;
  /// What arrives is thrown away and must not be written to `bytes`: this rank has failed. (Only in memory of a
  /// device_space.)
  bool discarded = false;
};

}  // namespace adasum
