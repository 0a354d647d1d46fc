// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A file of machine constants: it is refused by name, or what is read is written and read again with the same bits.
#include <string>

#include <adasum/adasum.hpp>
#include <adasum/machine_file.hpp>

#include "input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace adasum;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const auto machine = detail::machine_from_text(text, "file");
    for (const double one : schedules::constants_of(machine))
      fuzz::require(schedules::is_constant(one), "constants are finite and not negative");
    fuzz::require(detail::machine_from_text(machine_text(machine), "again") == machine,
                  "a machine is read as it was written");
  } catch (const bad_input& wrong) {
    fuzz::require(std::string_view(wrong.what()).starts_with("file"), "errors name the file");
  }
  return 0;
}
