// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect only: has stages, but lacks something else that a schedule has.*S::supports_gram_rules
#include <adasum/adasum.hpp>

/// Recursive doubling that does not say whether it takes rules for all gradients at once.
struct my_doubling {
  static constexpr std::string_view name = "my doubling";
#ifdef CORRECTED
  static constexpr bool supports_gram_rules = false;
#endif
  std::vector<adasum::stage> stages(int rank, int size, const adasum::schedule_input& what) const {
    return adasum::schedules::recursive_doubling{}.stages(rank, size, what);
  }
};

void use(std::vector<float>& gradient, const adasum::segments& segments) {
  adasum::combine_allreduce(adasum::serial_space{}, adasum::self_communicator{}, gradient, adasum::rules::sum{},
                            segments, my_doubling{});
}
