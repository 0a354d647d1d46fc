// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect only: this schedule has members, but no operator==: write .friend bool operator==
#include <adasum/adasum.hpp>

/// Recursive halving, of which two objects cannot be compared.
struct my_halving {
  static constexpr std::string_view name = "my halving";
  static constexpr bool supports_gram_rules = false;
  std::size_t radix = 2;
#ifdef CORRECTED
  friend bool operator==(const my_halving&, const my_halving&) = default;
#endif
  std::vector<adasum::stage> stages(int rank, int size, const adasum::schedule_input& what) const {
    return adasum::schedules::recursive_halving{radix}.stages(rank, size, what);
  }
};

void use(std::vector<float>& gradient) {
  adasum::adasum_allreduce(adasum::serial_space{}, adasum::self_communicator{}, gradient, my_halving{});
}
