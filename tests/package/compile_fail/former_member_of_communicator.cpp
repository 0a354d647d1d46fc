// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: reduction_in_flight.* offers .adasum::communicator_state& state\(\) const
#include <adasum/adasum.hpp>

#include <memory>

/// A communicator with a member that the concept once named.
struct alone : adasum::self_communicator {
#ifdef CORRECTED
  adasum::communicator_state& state() const { return *own; }
  std::shared_ptr<adasum::communicator_state> own = std::make_shared<adasum::communicator_state>();
#else
  bool& reduction_in_flight() const { return *own; }
  std::shared_ptr<bool> own = std::make_shared<bool>(false);
#endif
};

void use(std::vector<float>& gradient) { adasum::adasum_allreduce(adasum::serial_space{}, alone{}, gradient); }
