/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* What the C library offers, each of it run among the ranks of MPI_COMM_WORLD; with what it prints, see compare.py. */
#include "../c/check.h"

enum { length = 60 };
static const size_t lengths[] = {20, 40};
static int rank, size, failures_before = 0;

/* Prints a line of what was found, if nothing failed since the last one, on any rank. */
static void found(const char* feature) {
  int here = failures - failures_before, all = 0;
  MPI_Allreduce(&here, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("  %s: %s\n", feature, all == 0 ? "right" : "wrong");
  failures_before = failures;
}

/* Gradients that are orthogonal, so that Adasum adds them: ones at every size-th place. */
static void fill(float* data, int of_rank) {
  int i;
  for (i = 0; i < length; ++i) data[i] = i % size == of_rank ? 1.0f : 0.0f;
}
static int all_are(const float* data, float value) {
  int i, equal = 1;
  for (i = 0; i < length; ++i) equal = equal && close_to(data[i], value, 1e-6);
  return equal;
}

static void one_process(void) {
  float a[length], b[length], out[length];
  const void* gradients[3];
  int i;
  for (i = 0; i < length; ++i) {
    a[i] = i % 2 == 0 ? 1.0f : 0.0f;
    b[i] = 1.0f - a[i];
  }
  CHECK_OK(adasum_pair(a, b, out, length, ADASUM_FLOAT, lengths, 2));
  CHECK(all_are(out, 1));
  found("two gradients of one process");
  gradients[0] = gradients[1] = a;
  gradients[2] = b;
  CHECK_OK(adasum_combine(gradients, 3, out, length, ADASUM_FLOAT, lengths, 2, "sum", NULL, NULL));
  CHECK(out[0] == 2 && out[1] == 1);
  found("any number of gradients of one process");
}

static void allreduce(const char* rule, const char* options, adasum_report* report, float* data) {
  fill(data, rank);
  CHECK_OK(adasum_allreduce(MPI_COMM_WORLD, data, length, ADASUM_FLOAT, lengths, 2, rule, options, report));
}

static void among_ranks(void) {
  float data[length];
  allreduce("adasum", NULL, NULL, data);
  CHECK(all_are(data, 1));
  found("allreduce");
  found("segments");
}

static void plans(void) {
  float data[length];
  adasum_plan plan = ADASUM_NULL;
  void* buffer = NULL;
  int done = 0;
  CHECK_OK(adasum_plan_create(MPI_COMM_WORLD, length, ADASUM_FLOAT, lengths, 2, "adasum", NULL, &plan));
  fill(data, rank);
  CHECK_OK(adasum_plan_run(plan, data, length, ADASUM_FLOAT, NULL));
  CHECK(all_are(data, 1));
  found("a plan");
  fill(data, rank);
  CHECK_OK(adasum_plan_start(plan, data, length, ADASUM_FLOAT));
  while (!done) CHECK_OK(adasum_plan_test(plan, &done));
  CHECK_OK(adasum_plan_wait(plan, NULL));
  CHECK(all_are(data, 1));
  found("beside other work");
  CHECK_OK(adasum_plan_buffer(plan, &buffer));
  fill(buffer, rank);
  CHECK_OK(adasum_plan_run(plan, buffer, length, ADASUM_FLOAT, NULL));
  CHECK(all_are(buffer, 1));
  found("memory of the plan");
  CHECK_OK(adasum_plan_free(&plan));
}

/* Every name in the library's list, against what one process makes of the same gradients. */
static void rules(void) {
  char names[1000], *at, *end;
  float here[length], expected[length], all[8][length];
  const void* gradients[8];
  int i;
  CHECK(strlen(adasum_rules()) < sizeof names && size <= 8);
  strcpy(names, adasum_rules());
  for (i = 0; i < size; ++i) {
    fill(all[i], i);
    gradients[i] = all[i];
  }
  for (at = names; at; at = end) {
    const char* rule;
    int equal = 1;
    end = strstr(at, ", ");
    if (end) {
      *end = '\0';
      end += 2;
    }
    rule = strcmp(at, "nearest_neighbour_mixing") == 0 ? "nearest_neighbour_mixing:byzantine=1,rule=mean" : at;
    allreduce(rule, NULL, NULL, here);
    CHECK_OK(adasum_combine(gradients, (size_t)size, expected, length, ADASUM_FLOAT, lengths, 2, rule, NULL, NULL));
    for (i = 0; i < length; ++i) equal = equal && close_to(here[i], expected[i], 1e-5);
    check(equal, rule, __FILE__, __LINE__);
  }
  found("every rule of the library");
}

/* Each rank has a one at a place of its own, so that Adasum gives ones everywhere. `one` has `bytes` bytes. */
static void element_type(const char* name, int type, const void* one, size_t bytes) {
  double data[8] = {0}; /* aligned for every type */
  char* const elements = (char*)data;
  int i;
  CHECK(size <= 8);
  memcpy(elements + (size_t)rank * bytes, one, bytes);
  CHECK_OK(adasum_allreduce(MPI_COMM_WORLD, data, (size_t)size, type, NULL, 0, NULL, NULL, NULL));
  for (i = 0; i < size; ++i) CHECK(memcmp(elements + (size_t)i * bytes, one, bytes) == 0);
  found(name);
}
static void element_types(void) {
  const float f = 1;
  const double d = 1;
  const uint16_t h = 0x3c00, b = 0x3f80;
  element_type("float", ADASUM_FLOAT, &f, sizeof f);
  element_type("double", ADASUM_DOUBLE, &d, sizeof d);
  element_type("binary16", ADASUM_HALF, &h, sizeof h);
  element_type("bfloat16", ADASUM_BFLOAT16, &b, sizeof b);
}

static void options(void) {
  float data[length];
  adasum_report report = ADASUM_NULL;
  int excluded = -1;
  fill(data, rank);
  CHECK_ERROR(adasum_allreduce(MPI_COMM_WORLD, data, rank == 0 ? length - 1 : length, ADASUM_FLOAT, NULL, 0, NULL,
                               "check_agreement=yes", NULL),
              ADASUM_AGREEMENT_ERROR, "disagree on the length");
  found("check_agreement");
  allreduce("sum", "measure=when_needed", &report, data);
  CHECK(all_are(data, 1) && isnan(adasum_report_norm(report, 0, 0)));
  found("measure");
  fill(data, rank);
  if (rank == 1) data[0] = (float)INFINITY;
  CHECK_OK(adasum_allreduce(MPI_COMM_WORLD, data, length, ADASUM_FLOAT, NULL, 0, "sum", "nonfinite=exclude", &report));
  CHECK(adasum_report_excluded(report, &excluded, 1) == 1 && excluded == 1);
  found("nonfinite");
  fill(data, rank);
  CHECK_OK(adasum_allreduce(MPI_COMM_WORLD, data, length, ADASUM_FLOAT, NULL, 0, "sum", "wire=bfloat16, keep_plan=no", NULL));
  CHECK(all_are(data, 1)); /* ones are exact in 16 bits */
  found("wire");
  found("keep_plan");
  allreduce("adasum", "timeout=100", NULL, data);
  CHECK_ERROR(adasum_allreduce(MPI_COMM_WORLD, data, length, ADASUM_FLOAT, NULL, 0, NULL, "timeout=0", NULL),
              ADASUM_BAD_INPUT, "it must be positive");
  found("timeout");
  CHECK_OK(adasum_set_timeout(MPI_COMM_WORLD, 100));
  found("a timeout of the communicator");
  allreduce("mean", NULL, &report, data);
  CHECK(strcmp(adasum_report_rule(report), "mean") == 0 && adasum_report_contributions(report) == (size_t)size);
  found("a report");
  CHECK_OK(adasum_report_free(&report));
}

int main(int argc, char** argv) {
  int result;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == 0) printf("[languages]\nC\n");
  one_process();
  among_ranks();
  plans();
  rules();
  element_types();
  options();
  result = verdict(MPI_COMM_WORLD);
  MPI_Finalize();
  return result;
}
