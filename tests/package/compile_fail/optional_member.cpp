// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the rule's member degree is not .int degree\(\) const
#include <adasum/combine.hpp>
#include <adasum/exec/serial.hpp>

/// A rule whose degree is not one that the library would ask for.
struct halves {
  static constexpr std::string_view name = "halves";
  adasum::pair_weights operator()(const adasum::pair_gram&) const { return {0.5, 0.5}; }
#ifdef CORRECTED
  int degree() const { return 1; }
#else
  double degree() const { return 1; }
#endif
};

void use(std::vector<std::vector<float>>& gradients, std::vector<float>& out) {
  adasum::combine(adasum::serial_space{}, gradients, out, halves{});
}
