// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: timeout.* call comm.state\(\).set_timeout
#include <adasum/adasum.hpp>

#include <chrono>
#include <cstddef>

/// A communicator whose memory has a member that the concept once named.
struct alone : adasum::self_communicator {
  struct window : memory {
    using memory::memory;
#ifndef CORRECTED
    std::chrono::duration<double> timeout() const { return std::chrono::seconds(1); }
#endif
  };
  window share(std::size_t bytes) const { return window(bytes); }
};

void use(std::vector<float>& gradient) { adasum::adasum_allreduce(adasum::serial_space{}, alone{}, gradient); }
