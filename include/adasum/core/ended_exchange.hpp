// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <new>
#include <utility>

#include "error.hpp"

namespace adasum::detail {

/// For communicators. An exchange that throws std::bad_alloc counts as not begun (core/concepts.hpp). So where one has
/// ended, and there is no memory for its error, one that was made beforehand is thrown.
class ended_exchange {
 public:
  /// Runs throw_error(), which throws if something went wrong.
  template <class ThrowError>
  void report(ThrowError&& throw_error) const {
    try {
      std::forward<ThrowError>(throw_error)();
    } catch (const std::bad_alloc&) {
      throw communication_error(without_memory_);
    }
  }

 private:
  communication_error without_memory_{"adasum: an exchange has failed, and there is no memory to say why"};
};

}  // namespace adasum::detail
