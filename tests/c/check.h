/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef ADASUM_TESTS_C_CHECK_H
#define ADASUM_TESTS_C_CHECK_H

#include <adasum/adasum.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the C programs share: checks that count what is wrong, on each rank. */

static int failures = 0, checks = 0;

static void check(int holds, const char* what, const char* file, int line) {
  ++checks;
  if (holds) return;
  ++failures;
  fprintf(stderr, "%s:%d: %s\n  (last error: %s)\n", file, line, what, adasum_last_error());
}
#define CHECK(what) check((what) ? 1 : 0, #what, __FILE__, __LINE__)

/* That a call returns this number, and that its message holds this text. */
static void check_error(int returned, int expected, const char* text, const char* call, const char* file, int line) {
  ++checks;
  if (returned == expected && (!text || strstr(adasum_last_error(), text))) return;
  ++failures;
  fprintf(stderr, "%s:%d: %s returned %s, not %s; its message is\n  %s\n  and should hold\n  %s\n", file, line, call,
          adasum_error_name(returned), adasum_error_name(expected), adasum_last_error(), text ? text : "");
}
#define CHECK_ERROR(call, expected, text) check_error((call), (expected), (text), #call, __FILE__, __LINE__)
#define CHECK_OK(call) check_error((call), ADASUM_SUCCESS, NULL, #call, __FILE__, __LINE__)

#define close_to(a, b, tolerance) (fabs((double)(a) - (double)(b)) <= (tolerance) * (1 + fabs((double)(b))))

/* For main(): all ranks return the same. */
static int verdict(MPI_Comm comm) {
  int all = failures;
  if (comm != MPI_COMM_NULL) MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, comm);
  if (all == 0 && checks > 0) return 0;
  fprintf(stderr, "%d of %d checks failed here, %d on all ranks\n", failures, checks, all);
  return 1;
}

#endif
