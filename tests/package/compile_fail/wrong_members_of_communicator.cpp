// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the communicator's member share is not a function share\(std::size_t\) const that returns a shared_window
// expect: the communicator's member reserve is neither .void reserve\(std::size_t, std::size_t\) const. nor
// expect: the communicator's member state is not .adasum::communicator_state& state\(\) const
// expect: a communicator with post\(\) or a type .pending. must be a posting_communicator
#include <adasum/adasum.hpp>

#include <memory>

/// Communicators with members that are not those that the library would ask for.
struct shares_no_memory : adasum::self_communicator {
#ifdef CORRECTED
  memory share(std::size_t bytes) const { return memory(bytes); }
#else
  std::vector<std::byte> share(std::size_t bytes) const { return std::vector<std::byte>(bytes); }
#endif
};

struct reserves_bytes : adasum::self_communicator {
#ifdef CORRECTED
  void reserve(std::size_t, std::size_t) const {}
#else
  void reserve(std::size_t) const {}
#endif
};

struct changing_state : adasum::self_communicator {
#ifdef CORRECTED
  adasum::communicator_state& state() const { return *own; }
#else
  adasum::communicator_state& state() { return *own; }
#endif
  std::shared_ptr<adasum::communicator_state> own = std::make_shared<adasum::communicator_state>();
};

struct posts_without_pending : adasum::self_communicator {
#ifdef CORRECTED
  struct pending {
#else
  struct request {
#endif
    bool test() { return true; }
    void wait() {}
  };
#ifndef CORRECTED
  using pending_type = request;
#else
  using pending_type = pending;
#endif
  template <class Space>
  void post(const Space&, std::span<const adasum::outgoing>, std::span<const adasum::incoming>, pending_type&) const {}
};

void use(std::vector<float>& gradient) {
  adasum::adasum_allreduce(adasum::serial_space{}, shares_no_memory{}, gradient);
  adasum::adasum_allreduce(adasum::serial_space{}, reserves_bytes{}, gradient);
  adasum::adasum_allreduce(adasum::serial_space{}, changing_state{}, gradient);
  adasum::adasum_allreduce(adasum::serial_space{}, posts_without_pending{}, gradient);
}
