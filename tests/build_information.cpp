// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/build_information.hpp>
#include <adasum/exec/serial.hpp>

#include <doctest/doctest.h>

#include <string>

namespace test_of_build_information {

using namespace adasum;

TEST_CASE("build information: lines that say what is there") {
  const std::string text = build_information();
  const auto has_line = [&](const std::string& line) { return ("\n" + text).find("\n" + line + "\n") != std::string::npos; };
  CHECK(text.starts_with("adasum: " + std::to_string(version_major) + "." + std::to_string(version_minor) + "."));
  CHECK(text.ends_with("\n"));
  CHECK(has_line("instruction set: " + std::string(to_string(serial_space().instructions()))));
  CHECK(has_line("instruction set of this processor: " + std::string(to_string(best_instruction_set()))));
}

}  // namespace test_of_build_information
