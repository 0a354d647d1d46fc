// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include "concepts.hpp"

namespace adasum::detail {

/// What an object that works with any communicator keeps of an exchange in flight: nothing where none can be posted.
template <class Comm, class Space>
struct pending_of {
  struct type {};
};
template <class Comm, class Space>
  requires posting_communicator<Comm, Space>
struct pending_of<Comm, Space> {
  using type = typename Comm::pending;
};

}  // namespace adasum::detail
