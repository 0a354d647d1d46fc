// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "thread_reduction.hpp"

#include <adasum/communicators/threads.hpp>
#include <adasum/detail/engine/run_once.hpp>

namespace adasum::test {

std::vector<report> reduce_on_threads(const detail::space_ref& space, std::span<std::byte* const> gradients,
                                      std::size_t count, segments_view segs, detail::rule_ref rule,
                                      detail::schedule_ref order, const basic_options<true>& choices) {
  const serial_space exec;
  return results_of(on_ranks(static_cast<int>(gradients.size()), [&](const thread_communicator& comm) {
    detail::plan_ptr made;
    return detail::run_once({"a test", space, detail::ref_to_communicator(exec, comm), rule, order, segs, choices},
                            gradients[static_cast<std::size_t>(comm.rank())], count, made);
  }));
}

}  // namespace adasum::test
