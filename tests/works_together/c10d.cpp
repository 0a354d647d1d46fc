// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranks that are processes of one of PyTorch's process groups, which talk by gloo.
#include "support/doctest_beside_torch.hpp"

#include <adasum/comm/any.hpp>
#include <adasum/comm/c10d.hpp>

#include "check_findings.hpp"
#include "combinations.hpp"
#include "support/gloo_world.hpp"
#include "trials.hpp"

namespace test_of_works_together_c10d {

using namespace adasum;
using namespace adasum::test;

TEST_CASE("works together: processes of a process group") {
  const c10d_communicator comm(gloo_group());
  rank_findings mine;
  mine.wrong = try_combinations(any_communicator(comm), {.name = "c10d_communicator"}, schedules_of(comm.size()), mine.found);
  check_ranks({mine});
  if (comm.rank() == 0) check_findings(mine.found, "c10d");
}

}  // namespace test_of_works_together_c10d
