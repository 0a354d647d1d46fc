// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the rule has a member that is no longer asked for: .*chosen_name, since its .name. need not be static
#include <adasum/combine.hpp>
#include <adasum/exec/serial.hpp>

/// A rule whose name depends on the object.
struct halves {
#ifdef CORRECTED
  std::string_view name = "halves";
#else
  static constexpr std::string_view name = "fractions";
  std::string_view chosen_name() const { return "halves"; }
#endif
  adasum::pair_weights operator()(const adasum::pair_gram&) const { return {0.5, 0.5}; }
};

void use(std::vector<std::vector<float>>& gradients, std::vector<float>& out) {
  adasum::combine(adasum::serial_space{}, gradients, out, halves{});
}
