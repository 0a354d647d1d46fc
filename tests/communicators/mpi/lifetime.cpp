// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include <adasum/mpi.hpp>

/// A communicator before MPI_Init, after MPI_Finalize, and one that is still there then, with plans.

namespace {

bool failed = false;

void expect(bool holds, const char* what) {
  if (!holds) std::fprintf(stderr, "failed: %s\n", what);
  failed |= !holds;
}

std::string message_of_bad_input() {
  try {
    const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  } catch (const adasum::bad_input& e) {
    return e.what();
  }
  return "nothing was thrown";
}

}  // namespace

int main(int argc, char** argv) {
  adasum::mpi_communicator member;  // as a class may hold one that is made before MPI is initialised
  expect(!member && !adasum::mpi_communicator{MPI_COMM_NULL}, "an empty communicator before MPI_Init");
  expect(message_of_bad_input() == "adasum::mpi_communicator: MPI is not initialised (call MPI_Init first)",
         "a communicator before MPI_Init");
  MPI_Init(&argc, &argv);
  std::optional<adasum::mpi_communicator> late(MPI_COMM_WORLD);
  expect(late->size() >= 1, "a communicator between the two");
  // A plan whose buffer lies in memory that the ranks share, which stays after MPI_Finalize.
  std::optional plan(adasum::plan_allreduce<float>(adasum::serial_space{}, *late, adasum::segments{1000}));
  std::ranges::fill(plan->buffer(), 1.0f);
  (*plan)();
  expect(plan->buffer()[0] == 1, "a plan in its own buffer");
  // A plan of single calls, which the communicator keeps.
  for (int call = 0; call < 3; ++call) {
    std::vector<float> gradient(1000, 1.0f);
    adasum::adasum_allreduce(adasum::serial_space{}, *late, gradient);
    expect(gradient[0] == 1, "a single call, made again");
  }
  member = *late;
  expect(member.size() == late->size(), "a communicator assigned to an empty one");
  MPI_Finalize();
  expect(message_of_bad_input() == "adasum::mpi_communicator: MPI has already been finalised",
         "a communicator after MPI_Finalize");
  plan.reset();
  late.reset();
  member = {};  // the last one, and what it keeps: must not call MPI any more
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
