// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the package finds wrong before it can call the library's own functions (an array with gaps, a rule that is no string):
// this rank takes no part, and the other ranks are told why in the package's words.
#include <string>

#include "../c/arguments.hpp"
#include "../c/communicators.hpp"
#include "../c/errors.hpp"
#include "../c/plans.hpp"

using namespace adasum::c;

extern "C" {

/// In place of a collective call. Returns the error; it is ADASUM_BAD_INPUT where the communicator can be used.
__attribute__((visibility("default"))) int adasum_python_refuse(MPI_Comm comm, const char* options, const char* problem) {
  return error_of([&] {
    prepare_among_ranks(communicator_of(comm, "adasum"), {"adasum", 0, 0, nullptr, options},
                        [&] { throw adasum::bad_input(problem); });
  });
}

/// In place of adasum_plan_start; adasum_plan_wait returns the error.
__attribute__((visibility("default"))) int adasum_python_refuse_start(adasum_plan plan, const char* problem) {
  return refuse_start(plan, problem);
}

}  // extern "C"
