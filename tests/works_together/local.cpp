// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/exec/serial.hpp>
#include <adasum/exec/threads.hpp>

#include "check_findings.hpp"
#include "one_process.hpp"

namespace test_of_works_together_local {

using namespace adasum;
using namespace adasum::test;

TEST_CASE("works together: spaces of the host") {
  findings found;
  const auto as_it_is = [](const auto& gradient) { return gradient; };
  try_space(serial_space(), "serial_space", found, as_it_is);
  try_space(threads_space(2), "threads_space", found, as_it_is);
  check_findings(found, "local");
}

}  // namespace test_of_works_together_local
