// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "arguments.hpp"

#include <cstdint>
#include <string>

#include <adasum/adasum.h>
#include <adasum/core/options_text.hpp>
#include <adasum/exec/serial/instruction_set.hpp>

#ifdef ADASUM_C_WITH_EIGEN
#include <adasum/rules/eigen/named.hpp>
#else
#include <adasum/rules/named.hpp>
#endif

namespace adasum::c {
namespace {

#ifdef ADASUM_C_WITH_EIGEN
constexpr auto* rule_named = rules::named_with_eigen;
constexpr auto* all_names = rules::names_of_rules_with_eigen;
#else
constexpr auto* rule_named = rules::named;
constexpr auto* all_names = rules::names_of_rules;
#endif

}  // namespace

request rule_and_options_of(const call_arguments& given) {
  default_instruction_set();  // throws if it cannot be read; later, other ranks might wait
  request asked{.call = given.call};
  if (given.rule) asked.rule = rule_named(given.rule);
  if (given.options) read_options(asked.choices, given.options);
  return asked;
}

bool asks_for_agreement(const char* options) {
  basic_options<true> choices{.check_agreement = false};
  try {
    if (options) read_options(choices, options);
  } catch (...) {  // what was read before stays
  }
  return choices.check_agreement;
}

std::string problem_with_address(const void* data, const element_type& type, const char* call) {
  if (reinterpret_cast<std::uintptr_t>(data) % type.alignment == 0) return {};
  return detail::joined({call, ": an array of ", type.name, " must begin at a multiple of ", type.alignment, " bytes"});
}
void require_aligned(const void* data, const element_type& type, const char* call) {
  if (const auto problem = problem_with_address(data, type, call); !problem.empty()) throw bad_input(problem);
}

}  // namespace adasum::c

extern "C" const char* adasum_rules(void) {
  static const std::string names = adasum::c::all_names();
  return names.c_str();
}
