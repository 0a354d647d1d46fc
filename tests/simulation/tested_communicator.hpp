// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <adasum/testing/simulated_communicator.hpp>

namespace adasum::test {

/// What is wrong on purpose, to see that it is found.
enum class plant { nothing, wrong_weight, unmarked_failure, missing_wait, count };
inline plant planted = plant::nothing;

/// A simulated communicator with that.
class tested_communicator : public simulated_communicator {
 public:
  tested_communicator(const simulated_communicator& comm) : simulated_communicator(comm) {}

  tested_communicator without_kept_plans() const { return simulated_communicator::without_kept_plans(); }

  /// Where a wait is missing, test() says that all is there.
  class pending : public simulated_communicator::pending {
   public:
    bool test() { return simulated_communicator::pending::test() || planted == plant::missing_wait; }
  };

  template <class Space>
  void exchange(const Space& space, std::span<const outgoing> out, std::span<const incoming> in) const {
    if (planted == plant::nothing) return simulated_communicator::exchange(space, out, in);
    const auto sent = altered(out);
    simulated_communicator::exchange(space, sent, in);
  }
  template <class Space>
  void post(const Space& space, std::span<const outgoing> out, std::span<const incoming> in, pending& one) const {
    if (planted == plant::nothing) return simulated_communicator::post(space, out, in, one);
    const auto sent = altered(out);
    simulated_communicator::post(space, sent, in, one);
  }

 private:
  static std::vector<outgoing> altered(std::span<const outgoing> out) {
    std::vector<outgoing> all(out.begin(), out.end());
    if (planted == plant::unmarked_failure)
      for (auto& message : all) message.withheld = false;
    return all;
  }
};

}  // namespace adasum::test
