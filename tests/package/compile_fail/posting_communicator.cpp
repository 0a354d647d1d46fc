// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: must be a posting_communicator
#include <adasum/adasum.hpp>

/// One rank, whose exchanges in flight do not say whether they have ended.
struct communicator_of_one {
  struct pending {
#ifdef CORRECTED
    bool test() { return true; }
#else
    void test() {}
#endif
    void wait() {}
  };

  int rank() const { return 0; }
  int size() const { return 1; }
  template <class Space>
  void exchange(const Space&, std::span<const adasum::outgoing>, std::span<const adasum::incoming>) const {}
  template <class Space>
  void post(const Space&, std::span<const adasum::outgoing>, std::span<const adasum::incoming>, pending&) const {}
};

void use(std::vector<float>& gradient) {
  adasum::adasum_allreduce(adasum::serial_space{}, communicator_of_one{}, gradient);
}
