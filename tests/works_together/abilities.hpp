// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <string_view>

#include <adasum/core/concepts.hpp>
#include <adasum/detail/collective/transport/shared_memory.hpp>

#include "findings.hpp"

namespace adasum::test {

/// What a communicator can do for gradients in memory of a space, by the concepts on which the library decides.
/// @param has_run  whether reductions of these two have been compared with the definition here
template <class Comm, class Space>
void note_abilities(findings& found, std::string_view comm, std::string_view space, bool has_run) {
  const auto note = [&](std::string_view word) { found.note("communicators × spaces", comm, space, word); };
  if constexpr (!communicator_for<Comm, Space>) {
    note("compiler: write a communicator for this execution space");
  } else {
    note(has_run ? "right" : "compiles");
    if (posting_communicator<Comm, Space>) note("posts");
    if (detail::shares_gradients<Comm, Space>) note("shares memory");
    if (stream_ordered_communicator<Comm, Space>) note("enqueues");
  }
}

}  // namespace adasum::test
