// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <mpi.h>

#include <string>

#include <adasum/communicators/mpi.hpp>

#include "support/mpi_world.hpp"

namespace test_of_communicators_mpi_handle {

/// The duplicate of the caller's communicator, and the caller's error handler.

using namespace adasum::test;

namespace {

int refuse_to_copy(MPI_Comm, int, void*, void*, void*, int*) { return MPI_ERR_OTHER; }

bool has_handler(MPI_Comm comm, MPI_Errhandler wanted) {
  MPI_Errhandler handler{};
  MPI_Comm_get_errhandler(comm, &handler);
  const bool same = handler == wanted;
  MPI_Errhandler_free(&handler);
  return same;
}

}  // namespace

TEST_CASE("the caller's error handler stays, and the duplicate has its own") {
  for (const MPI_Errhandler handler : {MPI_ERRORS_ARE_FATAL, MPI_ERRORS_RETURN}) {
    MPI_Comm callers = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &callers);
    MPI_Comm_set_errhandler(callers, handler);
    {
      const adasum::mpi_communicator comm{callers};
      CHECK(has_handler(callers, handler));
      CHECK(has_handler(comm.native(), MPI_ERRORS_RETURN));
    }
    MPI_Comm_free(&callers);
  }
}

TEST_CASE("a communicator that cannot be duplicated: an exception, although errors there are fatal") {
  MPI_Comm callers = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &callers);
  MPI_Comm_set_errhandler(callers, MPI_ERRORS_ARE_FATAL);
  // MPI_Comm_dup copies attributes by calling a function of the caller's; this one returns an error.
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(refuse_to_copy, MPI_COMM_NULL_DELETE_FN, &key, nullptr);
  int value = 0;
  MPI_Comm_set_attr(callers, key, &value);

  std::string call;
  try {
    const adasum::mpi_communicator comm{callers};
  } catch (const adasum::mpi_error& error) {
    call = error.call();
  }
  CHECK(call == "MPI_Comm_dup");
  CHECK(has_handler(callers, MPI_ERRORS_ARE_FATAL));

  MPI_Comm_delete_attr(callers, key);
  CHECK(adasum::mpi_communicator{callers}.size() == world_size());  // nothing else was wrong with it
  MPI_Comm_free_keyval(&key);
  MPI_Comm_free(&callers);
}

}  // namespace test_of_communicators_mpi_handle
