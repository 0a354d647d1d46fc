// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranks that are processes of MPI.
#include <doctest/doctest.h>

#include <adasum/communicators/any.hpp>
#include <adasum/communicators/mpi.hpp>

#include "check_findings.hpp"
#include "combinations.hpp"
#include "trials.hpp"

namespace test_of_works_together_mpi {

using namespace adasum;
using namespace adasum::test;

TEST_CASE("works together: processes of MPI") {
  const mpi_communicator comm(MPI_COMM_WORLD);
  rank_findings mine;
  mine.wrong = try_combinations(any_communicator(comm), {.name = "mpi_communicator"}, schedules_of(comm.size()), mine.found);
  check_ranks({mine});
  if (comm.rank() == 0) check_findings(mine.found, "mpi");
}

}  // namespace test_of_works_together_mpi
