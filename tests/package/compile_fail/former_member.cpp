// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: needs_gram.* there is .static constexpr adasum::inner_products needs
#include <adasum/combine.hpp>
#include <adasum/exec/serial.hpp>

/// A rule with a member that the concept once named.
struct halves {
  static constexpr std::string_view name = "halves";
#ifdef CORRECTED
  static constexpr auto needs = adasum::inner_products::none;
#else
  static constexpr bool needs_gram = false;
#endif
  adasum::pair_weights operator()(const adasum::pair_gram&) const { return {0.5, 0.5}; }
};

void use(std::vector<std::vector<float>>& gradients, std::vector<float>& out) {
  adasum::combine(adasum::serial_space{}, gradients, out, halves{});
}
