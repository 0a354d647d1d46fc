// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "core/config.hpp"

#include <string>

#include "exec/serial/instruction_set.hpp"

namespace adasum {

/// What this program has of the library, for reports of errors: lines "name: value" of the version, the compiler, the vector
/// instructions that a serial_space uses, or why it cannot (ADASUM_ISA has a value that is not known), and those that this
/// processor has, and the environment variables that the library knows.
std::string build_information();

}  // namespace adasum

#if ADASUM_DEFINITIONS
#include "chrome_trace.hpp"
#include "core/environment.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "machine_file.hpp"
#include "version.hpp"

namespace adasum {

ADASUM_INLINE std::string build_information() {
#if defined(__clang__)
  constexpr auto compiler = __VERSION__;
#else
  constexpr auto compiler = "GCC " __VERSION__;
#endif
#if defined(__OPTIMIZE__)
  constexpr auto optimized = ", optimized";
#else
  constexpr auto optimized = ", not optimized";
#endif
  std::string text;
  detail::append(text, {"adasum: ", version_major, ".", version_minor, ".", version_patch, "\n"});
  detail::append(text, {"compiler: ", compiler, ", C++", __cplusplus / 100 % 100, optimized, "\n"});
  try {
    detail::append(text, {"instruction set: ", to_string(default_instruction_set()), "\n"});
  } catch (const bad_input& unknown) {
    detail::append(text, {"instruction set: ", unknown.what(), "\n"});
  }
  detail::append(text, {"instruction set of this processor: ", to_string(best_instruction_set()), "\n"});
  for (const auto* const variable :
       {detail::instruction_set_variable, detail::machine_variable, detail::trace_variable})
    detail::append(text, {variable, ": ", detail::environment(variable), "\n"});
  return text;
}

}  // namespace adasum
#endif
