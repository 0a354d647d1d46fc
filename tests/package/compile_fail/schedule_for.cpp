// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this schedule combines gradients pair by pair, and the rule needs all inner products at once
#include <adasum/adasum.hpp>

/// A rule for all gradients at once: the first one.
struct first_of_all {
  static constexpr std::string_view name = "first of all";
  void operator()(adasum::gram_view, std::span<double> weights) const {
    for (auto& weight : weights) weight = 0;
    weights[0] = 1;
  }
};

#ifdef CORRECTED
using some_schedule = adasum::schedules::all_to_all;
#else
using some_schedule = adasum::schedules::recursive_halving;
#endif

void use(std::vector<float>& gradient, const adasum::segments& segments) {
  adasum::combine_allreduce(adasum::serial_space{}, adasum::self_communicator{}, gradient, first_of_all{}, segments,
                            some_schedule{});
}
