// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: communicator_for<.*comm\.size\(\)
#include <adasum/adasum.hpp>

/// One rank, whose size has the wrong type.
struct lonely_communicator {
  int rank() const { return 0; }
#ifdef CORRECTED
  int size() const { return 1; }
#else
  long size() const { return 1; }
#endif
  template <class Space>
  void exchange(const Space&, std::span<const adasum::outgoing>, std::span<const adasum::incoming>) const {}
};

void use(std::vector<float>& gradient) {
  adasum::adasum_allreduce(adasum::serial_space{}, lonely_communicator{}, gradient);
}
