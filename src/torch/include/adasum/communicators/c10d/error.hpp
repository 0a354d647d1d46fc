// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <adasum/core/config.hpp>

#include <string>

#include <adasum/core/error.hpp>

namespace adasum {

/// A process group failed to send or to receive.
class c10d_error : public communication_error {
 public:
  /// @param rank   this one @param doing  such as "receiving from rank 1" @param peer  that rank
  /// @param cause  what the process group says
  c10d_error(int rank, const std::string& doing, int peer, const std::string& cause)
      : communication_error("adasum::c10d_communicator: rank " + std::to_string(rank) + ": " + doing + " rank " +
                            std::to_string(peer) + " failed: " + cause),
        peer_(peer) {}

  /// The rank that it did not reach, or that did not come.
  int peer() const { return peer_; }

 private:
  int peer_;
};

}  // namespace adasum
