// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <new>
#include <utility>

#include "../references/communicator_ref.hpp"

namespace adasum::detail {

/// What messages may still use when this rank has given up waiting for another: it stays for good then.
template <class Memory>
struct left_to_messages {
  explicit left_to_messages(const communicator_ref& which) : comm(which) {}
  left_to_messages(const left_to_messages&) = delete;
  left_to_messages& operator=(const left_to_messages&) = delete;
  ~left_to_messages() {
    if (comm.gave_up()) new (std::nothrow) Memory(std::move(memory));
  }

  communicator_ref comm;
  Memory memory{};
};

}  // namespace adasum::detail
