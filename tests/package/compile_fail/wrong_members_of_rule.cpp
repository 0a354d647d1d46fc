// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the rule's member needs is not .static constexpr adasum::inner_products
// expect: the rule's member leaves_out_nonfinite is not .static constexpr bool
// expect: the rule's member degree is not .int degree\(\) const
#include <adasum/combine.hpp>
#include <adasum/rules/any_rule.hpp>
#include <adasum/exec/serial.hpp>

struct halves {
  static constexpr std::string_view name = "halves";
  adasum::pair_weights operator()(const adasum::pair_gram&) const { return {0.5, 0.5}; }
};

/// Rules whose members are not those that the library would ask for.
struct function_needs : halves {
#ifdef CORRECTED
  static constexpr auto needs = adasum::inner_products::none;
#else
  static constexpr adasum::inner_products needs() { return adasum::inner_products::none; }
#endif
};

struct function_leaves_out {
  static constexpr std::string_view name = "equal weights";
#ifdef CORRECTED
  static constexpr bool leaves_out_nonfinite = false;
#else
  static constexpr bool leaves_out_nonfinite() { return false; }
#endif
  void operator()(adasum::gram_view, std::span<double> weights) const { std::ranges::fill(weights, 1.0); }
};

struct chosen_at_run_time : halves {
#ifdef CORRECTED
  int degree() const { return 1; }
#else
  double degree() const { return 1; }
#endif
};

void use(std::vector<std::vector<float>>& gradients, std::vector<float>& out) {
  adasum::combine(adasum::serial_space{}, gradients, out, function_needs{});
  adasum::combine(adasum::serial_space{}, gradients, out, function_leaves_out{});
  adasum::combine(adasum::serial_space{}, gradients, out, adasum::rules::any_rule(chosen_at_run_time{}));
}
