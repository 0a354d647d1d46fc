// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cstddef>
#include <new>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <adasum/testing/simulated_communicator.hpp>

#include "support/allocations.hpp"

namespace adasum::test {

/// What is wrong on purpose, to see that it is found.
enum class plant {
  nothing,
  wrong_weight,
  unmarked_failure,  ///< ranks that withdraw send what they have
  missing_wait,      ///< test() says that all is there
  lasting_wait,  ///< where an exchange fails in a case that may need a timeout, but not in such a sum, its rank waits on
  swallowed_error,  ///< an exchange that fails with a message of another size does not throw
  replaced_error,   ///< a rank's own exception comes out as another
  lasting_failure,  ///< once an exchange of a rank has failed, its plans withhold for ever
  write_beside,     ///< the element behind the gradient
  leak,
  count
};
/// As arguments of the program, and a part of what the check that must find it says.
struct plant_and_check {
  std::string_view name, found;
};
inline constexpr std::array<plant_and_check, static_cast<std::size_t>(plant::count)> plants{
    {{"nothing", ""},
     {"wrong-weight", "ranks have different results"},
     {"unmarked-failure", "is off by"},
     {"missing-wait", "is off by"},
     {"lasting-wait", "nobody can go on"},
     {"swallowed-error", "returned although an exchange of its own had failed"},
     {"replaced-error", "did not throw what its rule or space had thrown"},
     {"lasting-failure", "after trouble went wrong"},
     {"write-beside", "wrote beside its gradient"},
     {"leak", "allocations are left"}}};
inline plant planted = plant::nothing;
/// Whether the case may need a timeout (lasting_wait), and where this rank's gradient ends (write_beside).
inline bool planted_case_may_time_out = false;
inline thread_local void* planted_behind_gradient = nullptr;
/// Allocations that stay, each with the address of the one before, so that sanitizers do not complain.
inline void* planted_leak = nullptr;
inline void leak_a_little() {
  void* const memory = ::operator new(sizeof(void*));
  *static_cast<void**>(memory) = std::exchange(planted_leak, memory);
}

/// A simulated communicator with that.
class tested_communicator : public simulated_communicator {
 public:
  tested_communicator(const simulated_communicator& comm) : simulated_communicator(comm) {}

  /// Where a wait is missing, test() says that all is there.
  class pending : public simulated_communicator::pending {
   public:
    bool test() { return simulated_communicator::pending::test() || planted == plant::missing_wait; }
  };

  template <class Space>
  void exchange(const Space& space, std::span<const outgoing> out, std::span<const incoming> in) const {
    if (planted == plant::nothing) return simulated_communicator::exchange(space, out, in);
    const auto sent = without_failures([&] { return altered(out); });
    try {
      simulated_communicator::exchange(space, sent, in);
    } catch (const simulated_deadlock&) {
      throw;
    } catch (const communication_error&) {
      if (planted == plant::lasting_wait && planted_case_may_time_out) await_nothing(space);
      if (planted != plant::swallowed_error) throw;
    }
  }
  template <class Space>
  void post(const Space& space, std::span<const outgoing> out, std::span<const incoming> in, pending& one) const {
    if (planted == plant::nothing) return simulated_communicator::post(space, out, in, one);
    const auto sent = without_failures([&] { return altered(out); });
    simulated_communicator::post(space, sent, in, one);
  }

 private:
  std::vector<outgoing> altered(std::span<const outgoing> out) const {
    std::vector<outgoing> all(out.begin(), out.end());
    if (planted == plant::unmarked_failure)
      for (auto& message : all) message.withheld = false;
    if (planted == plant::lasting_failure && failed_exchanges() > 0)
      for (auto& message : all) message.withheld = true;
    return all;
  }
  /// A message of this rank to itself, which nobody sends.
  template <class Space>
  void await_nothing(const Space& space) const {
    std::byte nothing{};
    const incoming never{rank(), std::span(&nothing, 1)};
    simulated_communicator::exchange(space, {}, std::span(&never, 1));
  }
};

}  // namespace adasum::test
