// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <string>
#include <vector>

#include "../../core/message.hpp"
#include "mailbox.hpp"

namespace adasum::detail::threads {

/// How far one exchange of one rank has come. Its vectors are kept from one exchange to the next, so that none allocates
/// once they have grown to its size.
struct pending_messages {
  int rank = 0;
  std::vector<posted_message> sent;
  std::vector<incoming> expected;
  std::size_t received = 0;  // so many of `expected` have arrived, or never will
  std::size_t taken = 0;     // so many of `sent` have been taken, or never will be
  std::string problem;
};

}  // namespace adasum::detail::threads
