/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The calls on one process, and the library itself; in a program that never initialises MPI. */
#define _POSIX_C_SOURCE 200112L /* setenv */
#include "check.h"

static void check_library(void) {
  float one[] = {1};
  CHECK(adasum_version() == ADASUM_EXPECTED_VERSION);
  CHECK(strcmp(adasum_last_error(), "") == 0);
  setenv("ADASUM_ISA", "mmx", 1);
  CHECK(adasum_pair(one, one, one, 1, ADASUM_FLOAT, NULL, 0) == ADASUM_BAD_INPUT);
  CHECK(strstr(adasum_last_error(), "ADASUM_ISA is 'mmx'") != NULL);
  CHECK(strstr(adasum_build_information(), "instruction set: adasum: the environment variable ADASUM_ISA is 'mmx'") != NULL);
  unsetenv("ADASUM_ISA");
  CHECK(strstr(adasum_build_information(), "adasum: " ADASUM_EXPECTED_VERSION_TEXT "\ncompiler: ") ==
        adasum_build_information());
  puts(adasum_build_information());
  CHECK(strstr(adasum_rules(), "adasum, adasum_linear, sum, mean") == adasum_rules());
  CHECK(strstr(adasum_rules(), "nearest_neighbour_mixing") != NULL);
  CHECK(strcmp(adasum_error_name(ADASUM_SUCCESS), "ADASUM_SUCCESS") == 0);
  CHECK(strcmp(adasum_error_name(ADASUM_BAD_INPUT), "ADASUM_BAD_INPUT") == 0);
  CHECK(strcmp(adasum_error_name(ADASUM_AGREEMENT_ERROR), "ADASUM_AGREEMENT_ERROR") == 0);
  CHECK(strcmp(adasum_error_name(ADASUM_NONFINITE_ERROR), "ADASUM_NONFINITE_ERROR") == 0);
  CHECK(strcmp(adasum_error_name(ADASUM_SHARED_MEMORY_ERROR), "ADASUM_SHARED_MEMORY_ERROR") == 0);
  CHECK(strcmp(adasum_error_name(ADASUM_COMMUNICATION_ERROR), "ADASUM_COMMUNICATION_ERROR") == 0);
  CHECK(strcmp(adasum_error_name(ADASUM_TIMEOUT_ERROR), "ADASUM_TIMEOUT_ERROR") == 0);
  CHECK(strcmp(adasum_error_name(ADASUM_MPI_ERROR), "ADASUM_MPI_ERROR") == 0);
  CHECK(strcmp(adasum_error_name(ADASUM_OUT_OF_MEMORY), "ADASUM_OUT_OF_MEMORY") == 0);
  CHECK(strcmp(adasum_error_name(ADASUM_OTHER_ERROR), "ADASUM_OTHER_ERROR") == 0);
  CHECK(strcmp(adasum_error_name(-1), "unknown error") == 0);
}

/* Of orthogonal vectors the sum, of equal ones the mean; here one segment of each. */
static void check_pair(void) {
  const double a[] = {1, 0, 3, 4}, b[] = {0, 2, 3, 4}, whole_a = 1 - 25.0 / (2 * 26), whole_b = 1 - 25.0 / (2 * 29);
  const size_t lengths[] = {2, 0, 2};
  double out[4];
  float fa[] = {1, 0, 3, 4}, fb[] = {0, 2, 3, 4};
  const uint16_t half_one[] = {0x3c00, 0}, half_two[] = {0, 0x4000}, brain_one[] = {0x3f80, 0}, brain_two[] = {0, 0x4000};
  uint16_t half[2], brain[2];
  CHECK_OK(adasum_pair(a, b, out, 4, ADASUM_DOUBLE, lengths, 3));
  CHECK(out[0] == 1 && out[1] == 2 && out[2] == 3 && out[3] == 4);
  CHECK_OK(adasum_pair(a, b, out, 4, ADASUM_DOUBLE, NULL, 0));
  CHECK(close_to(out[0], whole_a, 1e-14) && close_to(out[1], 2 * whole_b, 1e-14));
  CHECK(close_to(out[3], 4 * whole_a + 4 * whole_b, 1e-14));
  CHECK_OK(adasum_pair(fa, fb, fa, 4, ADASUM_FLOAT, lengths, 3)); /* in place */
  CHECK(fa[0] == 1 && fa[1] == 2 && fa[2] == 3 && fa[3] == 4);
  CHECK_OK(adasum_pair(half_one, half_two, half, 2, ADASUM_HALF, NULL, 0));
  CHECK(half[0] == 0x3c00 && half[1] == 0x4000);
  CHECK_OK(adasum_pair(brain_one, brain_two, brain, 2, ADASUM_BFLOAT16, NULL, 0));
  CHECK(brain[0] == 0x3f80 && brain[1] == 0x4000);
  CHECK_OK(adasum_pair(NULL, NULL, NULL, 0, ADASUM_FLOAT, NULL, 0)); /* nothing to do */
}

static void check_pair_errors(void) {
  double a[4] = {1, 2, 3, 4}, b[4] = {1, 2, 3, 4}, out[4] = {5, 6, 7, 8};
  const size_t lengths[] = {2, 3}, too_many[] = {1, (size_t)-1};
  CHECK_ERROR(adasum_pair(NULL, b, out, 4, ADASUM_DOUBLE, NULL, 0), ADASUM_BAD_INPUT, "null pointer");
  CHECK_ERROR(adasum_pair(a, NULL, out, 4, ADASUM_DOUBLE, NULL, 0), ADASUM_BAD_INPUT, "null pointer");
  CHECK_ERROR(adasum_pair(a, b, NULL, 4, ADASUM_DOUBLE, NULL, 0), ADASUM_BAD_INPUT, "null pointer");
  CHECK_ERROR(adasum_pair(a, b, out, 4, ADASUM_DOUBLE, lengths, 2), ADASUM_BAD_INPUT, "5 elements");
  CHECK_ERROR(adasum_pair(a, b, out, 4, ADASUM_DOUBLE, NULL, 2), ADASUM_BAD_INPUT, "lengths of 2 segments");
  CHECK_ERROR(adasum_pair(a, b, out, 4, ADASUM_DOUBLE, too_many, 2), ADASUM_BAD_INPUT, "overflows");
  CHECK_ERROR(adasum_pair(a, b, out, 4, ADASUM_DOUBLE, lengths, 0), ADASUM_BAD_INPUT, "0 elements");
  CHECK_ERROR(adasum_pair(a, b, out, (size_t)-4, ADASUM_DOUBLE, NULL, 0), ADASUM_BAD_INPUT, "no memory holds");
  CHECK_ERROR(adasum_pair(a, b, out, 4, 0, NULL, 0), ADASUM_BAD_INPUT, "no type 0");
  CHECK_ERROR(adasum_pair(a, b, out, 4, 5, NULL, 0), ADASUM_BAD_INPUT, "no type 5");
  CHECK_ERROR(adasum_pair((const char*)a + 1, b, out, 3, ADASUM_DOUBLE, NULL, 0), ADASUM_BAD_INPUT, "multiple of 8");
  CHECK_ERROR(adasum_pair(a, b, a + 1, 3, ADASUM_DOUBLE, NULL, 0), ADASUM_BAD_INPUT, "overlaps");
  CHECK(out[0] == 5 && out[3] == 8 && a[1] == 2);
}

static void check_combine(void) {
  const double a[] = {1, 0, 0}, b[] = {0, 1, 0}, c[] = {0, 0, 7};
  const double bad[] = {0, HUGE_VAL, 0};
  const void *all[] = {a, b, c}, *with_bad[] = {a, bad, c};
  double out[3];
  const adasum_report none = ADASUM_NULL;
  adasum_report report = ADASUM_NULL, copy;
  int ranks[2] = {-1, -1};
  char text[40], whole[4096];
  size_t length;
  CHECK_OK(adasum_combine(all, 3, out, 3, ADASUM_DOUBLE, NULL, 0, NULL, NULL, &report));
  CHECK(out[0] == 1 && out[1] == 1 && out[2] == 7);
  CHECK(adasum_report_contributions(report) == 3 && adasum_report_segments(report) == 1);
  CHECK(strcmp(adasum_report_rule(report), "adasum") == 0 && strcmp(adasum_report_schedule(report), "") == 0);
  CHECK(close_to(adasum_report_orthogonality(report, 0), 1, 1e-14));
  CHECK(close_to(adasum_report_orthogonality(report, ADASUM_ALL_SEGMENTS), 1, 1e-14));
  CHECK(adasum_report_norm(report, 2, 0) == 7 && adasum_report_weight(report, 1, 0) == 1);
  CHECK(close_to(adasum_report_result_norm(report, 0), sqrt(51), 1e-14));
  CHECK(adasum_report_finite(report) == 1 && adasum_report_excluded(report, NULL, 0) == 0);

  copy = report;
  CHECK_OK(adasum_combine(all, 3, out, 3, ADASUM_DOUBLE, NULL, 0, "centred_clipping:radius=1,iterations=1", NULL, &report));
  CHECK(copy.id == report.id && strcmp(adasum_report_rule(copy), "centred_clipping") == 0); /* overwritten */
  CHECK(close_to(out[2], 1.0 / 3, 1e-14) && close_to(out[0], 1.0 / 3, 1e-14)); /* the long one is cut to the median length */
  CHECK_OK(adasum_combine(all, 2, out, 3, ADASUM_DOUBLE, NULL, 0, "mean", "measure=when_needed", &report));
  CHECK(out[0] == 0.5 && isnan(adasum_report_norm(report, 0, 0)));

  CHECK_OK(adasum_combine(with_bad, 3, out, 3, ADASUM_DOUBLE, NULL, 0, "sum", "nonfinite=exclude", &report));
  CHECK(out[0] == 1 && out[1] == 0 && out[2] == 7);
  CHECK(adasum_report_finite(report) == 0 && adasum_report_excluded(report, ranks, 2) == 1 && ranks[0] == 1);
  CHECK_ERROR(adasum_combine(with_bad, 3, out, 3, ADASUM_DOUBLE, NULL, 0, "sum", "nonfinite=raise", &report),
              ADASUM_NONFINITE_ERROR, NULL);
  CHECK(adasum_report_excluded(report, NULL, 0) == 1); /* as it was */

  length = adasum_report_json(report, 12, NULL, 0);
  CHECK(length > 40 && length < sizeof whole && adasum_report_json(report, 12, whole, sizeof whole) == length);
  CHECK(strlen(whole) == length && strncmp(whole, "{\"step\":12,\"rule\":\"sum\"", 23) == 0 && whole[length - 1] == '}');
  CHECK(adasum_report_json(report, 12, text, sizeof text) == length && strlen(text) == sizeof text - 1);
  CHECK(strncmp(text, whole, sizeof text - 1) == 0);

  /* What there is not. */
  CHECK(isnan(adasum_report_norm(report, 3, 0)) && strstr(adasum_last_error(), "there is no contribution 3, only 3") != NULL);
  CHECK(isnan(adasum_report_weight(report, 0, 1)) && strstr(adasum_last_error(), "there is no segment 1") != NULL);
  CHECK(isnan(adasum_report_result_norm(report, 1)) && isnan(adasum_report_orthogonality(report, 1)));
  CHECK(adasum_report_excluded(report, NULL, 1) == 0 && strstr(adasum_last_error(), "ranks is a null pointer") != NULL);
  memset(text, 'x', sizeof text);
  CHECK(adasum_report_json(none, 0, text, sizeof text) == 0 && text[0] == '\0');
  CHECK(adasum_report_json(report, 0, NULL, 1) == 0 && strstr(adasum_last_error(), "text is a null pointer") != NULL);

  CHECK_OK(adasum_report_free(&report));
  CHECK(report.id == 0);
  CHECK_OK(adasum_report_free(&report)); /* like free(NULL) */
  CHECK_ERROR(adasum_report_free(&copy), ADASUM_BAD_INPUT, "has been freed");
  CHECK_ERROR(adasum_report_free(NULL), ADASUM_BAD_INPUT, "null pointer");
  CHECK(adasum_report_contributions(copy) == 0 && strcmp(adasum_report_rule(copy), "") == 0);
  CHECK_ERROR(adasum_combine(all, 3, out, 3, ADASUM_DOUBLE, NULL, 0, NULL, NULL, &copy), ADASUM_BAD_INPUT,
              "adasum_combine: there is no such report");
  CHECK_OK(adasum_combine(all, 3, out, 3, ADASUM_DOUBLE, NULL, 0, NULL, NULL, &report)); /* in the same place */
  CHECK(report.id != copy.id && isnan(adasum_report_norm(copy, 0, 0)));
  CHECK_OK(adasum_report_free(&report));
}

static void check_combine_errors(void) {
  const float a[] = {1, 2}, b[] = {3, 4};
  const void *both[] = {a, b}, *one[] = {a, NULL};
  float out[2] = {8, 9};
  adasum_report report = ADASUM_NULL;
  CHECK_ERROR(adasum_combine(NULL, 2, out, 2, ADASUM_FLOAT, NULL, 0, NULL, NULL, &report), ADASUM_BAD_INPUT, "the list of");
  CHECK_ERROR(adasum_combine(both, 0, out, 2, ADASUM_FLOAT, NULL, 0, NULL, NULL, &report), ADASUM_BAD_INPUT, "no gradient");
  CHECK_ERROR(adasum_combine(both, (size_t)-2, out, 2, ADASUM_FLOAT, NULL, 0, NULL, NULL, &report), ADASUM_BAD_INPUT,
              "gradients; a negative");
  CHECK_ERROR(adasum_combine(both, 2, out, (size_t)-2, ADASUM_FLOAT, NULL, 0, NULL, NULL, &report), ADASUM_BAD_INPUT,
              "elements; a negative");
  CHECK_ERROR(adasum_combine(one, 2, out, 2, ADASUM_FLOAT, NULL, 0, NULL, NULL, &report), ADASUM_BAD_INPUT, "gradient 1");
  CHECK_ERROR(adasum_combine(both, 2, out, 2, 9, NULL, 0, NULL, NULL, &report), ADASUM_BAD_INPUT, "no type 9");
  CHECK_ERROR(adasum_combine(both, 2, out, 2, ADASUM_FLOAT, NULL, 0, "median", NULL, &report), ADASUM_BAD_INPUT,
              "there is no rule 'median'; there are adasum, ");
  CHECK_ERROR(adasum_combine(both, 2, out, 2, ADASUM_FLOAT, NULL, 0, "centred_clipping:radios=2", NULL, &report),
              ADASUM_BAD_INPUT, "the rule centred_clipping: there is no 'radios'; there are radius, iterations, per_segment");
  CHECK_ERROR(adasum_combine(both, 2, out, 2, ADASUM_FLOAT, NULL, 0, NULL, "wires=same", &report), ADASUM_BAD_INPUT,
              "the options: there is no 'wires'; there are check_agreement, measure, nonfinite, wire, timeout, keep_plan");
  CHECK_ERROR(adasum_combine(both, 2, out, 2, ADASUM_FLOAT, NULL, 0, NULL, "nonfinite=drop", &report), ADASUM_BAD_INPUT,
              "nonfinite is 'drop'; it must be propagate or exclude or raise");
  CHECK(report.id == 0 && out[0] == 8 && out[1] == 9);
}

int main(void) {
  check_library();
  check_pair();
  check_pair_errors();
  check_combine();
  check_combine_errors();
  /* What needs MPI says so. */
  CHECK_ERROR(adasum_allreduce(MPI_COMM_WORLD, NULL, 0, ADASUM_FLOAT, NULL, 0, NULL, NULL, NULL), ADASUM_BAD_INPUT,
              "MPI is not initialised");
  CHECK_ERROR(adasum_set_timeout(MPI_COMM_WORLD, 1), ADASUM_BAD_INPUT, "MPI is not initialised");
  return verdict(MPI_COMM_NULL);
}
