// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include <adasum/comm/mpi.hpp>

/// A communicator before MPI_Init, after MPI_Finalize, and one that is still there then.

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
  expect(message_of_bad_input() == "adasum::mpi_communicator: MPI is not initialised (call MPI_Init first)",
         "a communicator before MPI_Init");
  MPI_Init(&argc, &argv);
  std::optional<adasum::mpi_communicator> late(MPI_COMM_WORLD);
  expect(late->size() >= 1, "a communicator between the two");
  MPI_Finalize();
  expect(message_of_bad_input() == "adasum::mpi_communicator: MPI is already finalised",
         "a communicator after MPI_Finalize");
  late.reset();  // must not call MPI any more
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
