// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <dlfcn.h>
#include <mpi.h>

#include <cstdio>

#include <adasum/mpi.hpp>

/// A communicator that outlives a plugin which has used it: what it keeps of the plugin's calls is destroyed by code of the
/// plugin, which has been unloaded.
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  bool as_expected = false;
  {
    const adasum::mpi_communicator comm(MPI_COMM_WORLD);
    void* const plugin = dlopen(ADASUM_TEST_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    void* const found = plugin ? dlsym(plugin, "reduce_in_plugin") : nullptr;
    if (found)
      as_expected = reinterpret_cast<bool (*)(const adasum::mpi_communicator*)>(found)(&comm) && dlclose(plugin) == 0;
    else
      std::fprintf(stderr, "%s\n", dlerror());
  }
  MPI_Finalize();
  return as_expected ? 0 : 1;
}
