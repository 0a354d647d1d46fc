/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The library is loaded, used and unloaded, by itself and by way of a plugin: MPI calls it back at MPI_Comm_free and in
 * MPI_Finalize. */
#include <adasum/adasum.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static int failures = 0;
#define CHECK(what) \
  do { \
    if (!(what)) fprintf(stderr, "%d: %s\n", __LINE__, #what), ++failures; \
  } while (0)

typedef int (*allreduce)(MPI_Comm, void*, size_t, int, const size_t*, size_t, const char*, const char*, adasum_report*);
typedef int (*set_timeout)(MPI_Comm, double);
typedef int (*plan_create)(MPI_Comm, size_t, int, const size_t*, size_t, const char*, const char*, adasum_plan*);
typedef int (*plugin)(MPI_Comm, float*, size_t);

/* The function of this name, as POSIX lets dlsym return it. */
static void find(void* library, const char* name, void* function) {
  void* const found = dlsym(library, name);
  if (!found) {
    fprintf(stderr, "%s\n", dlerror());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  memcpy(function, &found, sizeof found);
}

static void* load(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return library;
}

static void use_library(MPI_Comm comm, float expected) {
  void* const library = load(ADASUM_TEST_LIBRARY);
  allreduce reduce;
  set_timeout limit;
  plan_create create;
  float data[3] = {expected, expected, expected};
  adasum_plan plan = ADASUM_NULL; /* stays */
  find(library, "adasum_allreduce", &reduce);
  find(library, "adasum_set_timeout", &limit);
  find(library, "adasum_plan_create", &create);
  CHECK(reduce(comm, data, 3, ADASUM_FLOAT, NULL, 0, "mean", NULL, NULL) == ADASUM_SUCCESS);
  CHECK(data[0] == expected && data[2] == expected);
  CHECK(limit(comm, 100) == ADASUM_SUCCESS);
  CHECK(create(comm, 3, ADASUM_FLOAT, NULL, 0, "adasum", NULL, &plan) == ADASUM_SUCCESS);
  CHECK(reduce(comm, data, 3, 17, NULL, 0, "mean", NULL, NULL) == ADASUM_BAD_INPUT); /* a message of this thread */
  CHECK(dlclose(library) == 0);
}

static void use_plugin(MPI_Comm comm, float expected) {
  void* const library = load(ADASUM_TEST_PLUGIN);
  plugin reduce;
  float data[3] = {expected, expected, expected};
  find(library, "plugin_reduce", &reduce);
  CHECK(reduce(comm, data, 3) == ADASUM_SUCCESS);
  CHECK(data[0] == expected && data[2] == expected);
  CHECK(dlclose(library) == 0);
}

int main(int argc, char** argv) {
  MPI_Comm freed;
  MPI_Init(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &freed);
  use_plugin(freed, 1);
  use_plugin(MPI_COMM_WORLD, 2);
  MPI_Comm_free(&freed);
  MPI_Comm_dup(MPI_COMM_WORLD, &freed);
  use_library(freed, 3);
  use_library(MPI_COMM_WORLD, 4);
  MPI_Comm_free(&freed);
  MPI_Finalize();
  return failures > 0;
}
