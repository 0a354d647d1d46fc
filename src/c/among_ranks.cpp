// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "among_ranks.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <string>

#include <adasum/core/waiting.hpp>

using namespace adasum::c;

extern "C" {

int adasum_allreduce(MPI_Comm comm, void* data, size_t count, int type, const size_t* lengths, size_t segments,
                     const char* rule, const char* options, adasum_report* report) {
  return allreduce(comm, data, {"adasum_allreduce", count, type, rule, options}, lengths, segments, report);
}

int adasum_plan_create(MPI_Comm comm, size_t count, int type, const size_t* lengths, size_t segments, const char* rule,
                       const char* options, adasum_plan* plan) {
  return create_plan(comm, {"adasum_plan_create", count, type, rule, options}, lengths, segments, plan);
}

const char* adasum_mpi_library(void) {
  static const std::string text = [] {
    // Of which MPICH's may be longest. It may be here in place of the MPI that this was compiled for: that is to be found out.
    std::string found(std::max<std::size_t>(MPI_MAX_LIBRARY_VERSION_STRING, 8192), '\0');
    int length = 0;
    if (MPI_Get_library_version(found.data(), &length) != MPI_SUCCESS) length = 0;
    found.resize(static_cast<std::size_t>(length));
    return found;
  }();
  return text.c_str();
}

int adasum_set_timeout(MPI_Comm comm, double seconds) { return set_timeout(comm, seconds); }

int adasum_set_interruption(int (*requested)(void)) {
  static std::atomic<int (*)(void)> asked{nullptr};
  asked = requested;
  adasum::set_interruption_check(requested ? +[] { 
    const auto ask = asked.load();
    return ask && ask() != 0;
  } : nullptr);
  return ADASUM_SUCCESS;
}

}  // extern "C"
