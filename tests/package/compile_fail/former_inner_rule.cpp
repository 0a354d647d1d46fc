// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the schedule has a member that is no longer asked for: .*the rule .inner.
#include <adasum/adasum.hpp>

/// Recursive doubling with a rule that nobody asks for.
struct my_doubling {
  static constexpr std::string_view name = "my doubling";
  static constexpr bool supports_gram_rules = false;
#ifndef CORRECTED
  adasum::rules::mean inner{};
#endif
  std::vector<adasum::stage> stages(int rank, int size, const adasum::schedule_input& what) const {
    return adasum::schedules::recursive_doubling{}.stages(rank, size, what);
  }
  friend bool operator==(const my_doubling&, const my_doubling&) { return true; }
};

void use(std::vector<float>& gradient) {
  adasum::adasum_allreduce(adasum::serial_space{}, adasum::self_communicator{}, gradient, my_doubling{});
}
