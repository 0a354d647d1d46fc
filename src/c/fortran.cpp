// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the Fortran module (src/fortran/adasum_c.f90) calls in place of functions of adasum.h: communicators are Fortran's,
// lengths have the sign that integers have there, and arrays know how long they are.
#include <cstdint>
#include <string>
#include <vector>

#include "among_ranks.hpp"
#include "local.hpp"

using namespace adasum::c;

namespace {

#ifdef ADASUM_MPI_ABI  // which has no MPI_Fint
using fortran_handle = int;
MPI_Comm of_fortran(fortran_handle comm) { return MPI_Comm_fromint(comm); }
#else
using fortran_handle = MPI_Fint;
MPI_Comm of_fortran(fortran_handle comm) { return MPI_Comm_f2c(comm); }
#endif

/// @throws bad_input  an array of another length than that of the result
void require_length(size_t length, size_t count, const char* what, const char* call) {
  if (length != count)
    throw adasum::bad_input({call, ": ", what, " has ", length, " elements, the output has ", count});
}

/// A null pointer stands for an array that is not there: a program's mistake, which its compiler does not find.
#define ADASUM_IS_ABSENT " is not allocated, or is a pointer without a target"

void require_array(const void* array, const char* what, const char* call) {
  if (!array) throw adasum::bad_input({call, ": ", what, ADASUM_IS_ABSENT});
}

constexpr const char* no_integers = "adasum: the lengths of segments must be integers";

void require_integers(const int64_t* lengths, size_t segments) {
  if (!lengths && segments > 0) throw adasum::bad_input(no_integers);
}

/// What is known to be wrong with the array, or with the lengths; null if nothing.
const char* problem_of(const void* array, const char* is_absent, const int64_t* lengths, size_t segments) {
  if (!array) return is_absent;
  return !lengths && segments > 0 ? no_integers : nullptr;
}

}  // namespace

extern "C" {

ADASUM_API int adasum_fortran_pair(const void* a, size_t count_of_a, const void* b, size_t count_of_b, void* out,
                                   size_t count, int type, const int64_t* lengths, size_t segments) {
  return error_of([&] {
    require_array(a, "a", "adasum_pair");
    require_array(b, "b", "adasum_pair");
    require_array(out, "out", "adasum_pair");
    require_integers(lengths, segments);
    require_length(count_of_a, count, "a", "adasum_pair");
    require_length(count_of_b, count, "b", "adasum_pair");
    element_type_of(type, "adasum_pair")
        .pair(a, b, out, count, segments_of(lengths, segments, {"adasum_pair", count, type}));
  });
}

/// @param gradients  `number` columns of `length` elements, one behind the other
ADASUM_API int adasum_fortran_combine(const void* gradients, size_t number, size_t length, void* out, size_t count,
                                      int type, const int64_t* lengths, size_t segments, const char* rule,
                                      const char* options, adasum_report* report) {
  return error_of([&] {
    const call_arguments given{"adasum_combine", count, type, rule, options};
    require_array(gradients, "gradients", given.call);
    require_array(out, "out", given.call);
    require_integers(lengths, segments);
    require_length(length, count, "a column of gradients", given.call);
    const std::size_t bytes = length * (type == ADASUM_DOUBLE ? sizeof(double) : sizeof(float));
    std::vector<const void*> columns;
    for (std::size_t i = 0; i < number; ++i) columns.push_back(static_cast<const std::byte*>(gradients) + i * bytes);
    adasum::c::combine(columns, out, given, segments_of(lengths, segments, given), report);
  });
}

ADASUM_API int adasum_fortran_plan_run(adasum_plan plan, void* data, size_t count, int type, adasum_report* report) {
  return run_plan(plan, data, count, type, report, data ? nullptr : "adasum_plan_run: data" ADASUM_IS_ABSENT);
}

ADASUM_API int adasum_fortran_plan_start(adasum_plan plan, void* data, size_t count, int type, int contiguous) {
  const char* wrong = nullptr;
  if (!data)
    wrong = "adasum_plan_start: data" ADASUM_IS_ABSENT;
  else if (!contiguous)
    wrong =
        "adasum_plan_start: the array has gaps between its elements (it is a section of another), so the compiler would "
        "pass a copy that is gone before the reduction ends; give a contiguous array";
  return start_plan(plan, data, count, type, wrong);
}

ADASUM_API int adasum_fortran_plan_buffer(adasum_plan plan, int type, void** buffer) {
  return buffer_of_plan(plan, &type, buffer);
}

ADASUM_API int adasum_fortran_allreduce(fortran_handle comm, void* data, size_t count, int type, const int64_t* lengths,
                                        size_t segments, const char* rule, const char* options, adasum_report* report) {
  const char* const wrong = problem_of(data, "adasum_allreduce: data" ADASUM_IS_ABSENT, lengths, segments);
  return allreduce(of_fortran(comm), data, {"adasum_allreduce", count, type, rule, options, wrong}, lengths, segments,
                   report);
}

ADASUM_API int adasum_fortran_plan_create(fortran_handle comm, const void* mold, size_t count, int type,
                                          const int64_t* lengths, size_t segments, const char* rule,
                                          const char* options, adasum_plan* plan) {
  const char* const wrong = problem_of(mold, "adasum_plan_create: mold" ADASUM_IS_ABSENT, lengths, segments);
  return create_plan(of_fortran(comm), {"adasum_plan_create", count, type, rule, options, wrong}, lengths, segments,
                     plan);
}

ADASUM_API int adasum_fortran_set_timeout(fortran_handle comm, double seconds) {
  return set_timeout(of_fortran(comm), seconds);
}

}  // extern "C"
