// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect only: write static constexpr std::string_view name
#include <adasum/adasum.hpp>

/// A rule without a name.
struct first_only {
#ifdef CORRECTED
  static constexpr std::string_view name = "first only";
#endif
  adasum::pair_weights operator()(const adasum::pair_gram&) const { return {1, 0}; }
};

void use(std::vector<std::vector<float>>& gradients, std::vector<float>& out) {
  adasum::combine(adasum::serial_space{}, gradients, out, first_only{});
}
