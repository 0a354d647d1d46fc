// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the schedule has a member that is no longer asked for: chosen_name.*its .name., which need not be static
#include <adasum/adasum.hpp>

/// Recursive doubling, whose name depends on the object.
struct my_doubling {
#ifdef CORRECTED
  std::string_view name = "my doubling";
  friend bool operator==(const my_doubling&, const my_doubling&) = default;
#else
  static constexpr std::string_view name = "doubling";
  std::string_view chosen_name(int, const adasum::schedule_input&) const { return "my doubling"; }
#endif
  static constexpr bool supports_gram_rules = false;
  std::vector<adasum::stage> stages(int rank, int size, const adasum::schedule_input& what) const {
    return adasum::schedules::recursive_doubling{}.stages(rank, size, what);
  }
};

void use(std::vector<float>& gradient) {
  adasum::adasum_allreduce(adasum::serial_space{}, adasum::self_communicator{}, gradient, my_doubling{});
}
