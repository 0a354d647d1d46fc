// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the Fortran module (src/fortran/adasum_c.f90) calls in place of functions of adasum.h: communicators are Fortran's,
// lengths have the sign that integers have there, and arrays know how long they are.
#include <cstdint>
#include <string>

#include "among_ranks.hpp"
#include "local.hpp"

using namespace adasum::c;

namespace {

/// @throws bad_input  an array of another length than that of the result
void require_length(size_t length, size_t count, const char* what, const char* call) {
  if (length != count)
    throw adasum::bad_input(std::string(call) + ": " + what + " has " + std::to_string(length) +
                            " elements, the output has " + std::to_string(count));
}

}  // namespace

extern "C" {

ADASUM_API int adasum_fortran_pair(const void* a, size_t count_of_a, const void* b, size_t count_of_b, void* out,
                                   size_t count, int type, const int64_t* lengths, size_t segments) {
  return error_of([&] {
    require_length(count_of_a, count, "a", "adasum_pair");
    require_length(count_of_b, count, "b", "adasum_pair");
    calls_of(type, "adasum_pair").pair(a, b, out, count, segments_of(lengths, segments, {"adasum_pair", count, type}));
  });
}

ADASUM_API int adasum_fortran_combine(const void* const* gradients, size_t number, size_t length, void* out,
                                      size_t count, int type, const int64_t* lengths, size_t segments, const char* rule,
                                      const char* options, adasum_report* report) {
  return error_of([&] {
    const call_arguments given{"adasum_combine", count, type, rule, options};
    require_length(length, count, "a column of gradients", given.call);
    combine({gradients, number}, out, given, segments_of(lengths, segments, given), report);
  });
}

ADASUM_API int adasum_fortran_plan_start(adasum_plan plan, void* data, size_t count, int type, int contiguous) {
  return start_plan(plan, data, count, type, contiguous == 0);
}

ADASUM_API int adasum_fortran_plan_buffer(adasum_plan plan, int type, void** buffer) {
  return buffer_of_plan(plan, &type, buffer);
}

ADASUM_API int adasum_fortran_allreduce(MPI_Fint comm, void* data, size_t count, int type, const int64_t* lengths,
                                        size_t segments, const char* rule, const char* options, adasum_report* report) {
  return allreduce(MPI_Comm_f2c(comm), data, {"adasum_allreduce", count, type, rule, options}, lengths, segments,
                   report);
}

ADASUM_API int adasum_fortran_plan_create(MPI_Fint comm, size_t count, int type, const int64_t* lengths,
                                          size_t segments, const char* rule, const char* options, adasum_plan* plan) {
  return create_plan(MPI_Comm_f2c(comm), {"adasum_plan_create", count, type, rule, options}, lengths, segments, plan);
}

ADASUM_API int adasum_fortran_set_timeout(MPI_Fint comm, double seconds) {
  return set_timeout(MPI_Comm_f2c(comm), seconds);
}

}  // extern "C"
