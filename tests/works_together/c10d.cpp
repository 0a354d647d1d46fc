// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranks that are processes of one of PyTorch's process groups, which talk by gloo.
#include "support/doctest_beside_torch.hpp"

#include <fstream>
#include <string>

#include <adasum/comm/any.hpp>
#include <adasum/comm/c10d.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/exec/threads.hpp>

#include "abilities.hpp"
#include "check_findings.hpp"
#include "combinations.hpp"
#include "support/gloo_world.hpp"
#include "trials.hpp"

namespace test_of_works_together_c10d {

using namespace adasum;
using namespace adasum::test;

TEST_CASE("works together: processes of a process group") {
  findings found;
  const c10d_communicator comm(gloo_group());
  std::ofstream log(comm.rank() == 0 ? "works_together.c10d.log" : "/dev/null");
  const setting where{.name = std::to_string(comm.size()) + " processes of a process group"};
  rank_findings mine;
  mine.wrong = try_combinations(any_communicator(comm), where, drawn_among(comm.size(), 600), mine.found, mine.log);
  check_ranks({mine}, log);
  found.add_counts(mine.found);
  note_abilities<c10d_communicator, serial_space>(found, "c10d_communicator", "serial_space", true);
  note_abilities<c10d_communicator, threads_space>(found, "c10d_communicator", "threads_space", true);
  if (comm.rank() == 0) check_findings(found, "c10d");
}

}  // namespace test_of_works_together_c10d
