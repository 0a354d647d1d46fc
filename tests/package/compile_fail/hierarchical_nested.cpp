// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect only: give adasum::schedules::hierarchical a schedule across the nodes that has no inner rule of its own
#include <adasum/adasum.hpp>

using namespace adasum;

/// Sockets, nodes, and all of them: the mean in sockets would have been taken for the rule in nodes, too.
void use(std::vector<float>& gradient, const std::vector<int>& sockets, const std::vector<int>& nodes) {
#ifdef CORRECTED
  const schedules::automatic across_sockets;
  static_cast<void>(nodes);
#else
  const schedules::hierarchical across_sockets{nodes, rules::sum{}};
#endif
  adasum_allreduce(serial_space{}, self_communicator{}, gradient,
                   schedules::hierarchical{sockets, rules::mean{}, across_sockets});
}
