/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* An MPI library that is not the one for which libadasum was compiled: these functions take the place of its own. */
#include <string.h>

#include "check.h"

static int fill(char* text, int* length, int most) {
  memset(text, 'x', (size_t)most - 1);
  text[most - 1] = 0;
  *length = most - 1;
  return MPI_SUCCESS;
}

int MPI_Get_library_version(char* version, int* length) { return fill(version, length, 8192); }
int MPI_Error_string(int code, char* text, int* length) { return (void)code, fill(text, length, 512); }
int MPI_Comm_size(MPI_Comm comm, int* size) { return (void)comm, *size = 0, MPI_ERR_COMM; }

int main(int argc, char** argv) {
  float one[] = {1};
  MPI_Init(&argc, &argv);
  CHECK(strlen(adasum_mpi_library()) == 8191);
  CHECK(strstr(adasum_build_information(), "\nMPI: xxx") != NULL);
  CHECK_ERROR(adasum_allreduce(MPI_COMM_SELF, one, 1, ADASUM_FLOAT, NULL, 0, "adasum", NULL, NULL), ADASUM_MPI_ERROR,
              " failed: xxx");
  CHECK(strlen(adasum_last_error()) > 511);
  return MPI_Finalize() != MPI_SUCCESS || verdict(MPI_COMM_NULL);
}
