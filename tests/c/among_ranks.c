/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The calls among ranks: single ones, plans, every rule, and what happens where one rank is wrong. On any number of ranks. */
#define _POSIX_C_SOURCE 200112L /* setenv */
#include "check.h"

enum { length = 60 };
static const size_t lengths[] = {20, 0, 40};
static int rank, size;

/* The gradient of a rank: nothing special. */
static void fill(float* data, int of_rank) {
  int i;
  for (i = 0; i < length; ++i) data[i] = (float)sin(1.0 + i * (of_rank + 1.3));
}

/* Whether all ranks hold the same bits. */
static int same_everywhere(const float* data) {
  float first[length];
  memcpy(first, data, sizeof first);
  MPI_Bcast(first, length, MPI_FLOAT, 0, MPI_COMM_WORLD);
  return memcmp(first, data, sizeof first) == 0;
}

/* Under this rule, the ranks get what one process would. */
static void check_rule(const char* rule) {
  float data[length], expected[length];
  float* all = malloc(sizeof data * (size_t)size);
  const void** gradients = malloc(sizeof(void*) * (size_t)size);
  adasum_report here = ADASUM_NULL, local = ADASUM_NULL;
  int i, equal = 1;
  for (i = 0; i < size; ++i) {
    fill(all + i * length, i);
    gradients[i] = all + i * length;
  }
  fill(data, rank);
  CHECK_OK(adasum_allreduce(MPI_COMM_WORLD, data, length, ADASUM_FLOAT, lengths, 3, rule, "check_agreement=yes", &here));
  CHECK_OK(adasum_combine(gradients, (size_t)size, expected, length, ADASUM_FLOAT, lengths, 3, rule, NULL, &local));
  for (i = 0; i < length; ++i) equal = equal && close_to(data[i], expected[i], 1e-5);
  check(equal, rule, __FILE__, __LINE__);
  CHECK(same_everywhere(data));
  CHECK(strcmp(adasum_report_rule(here), adasum_report_rule(local)) == 0);
  CHECK(adasum_report_contributions(here) == (size_t)size && adasum_report_segments(here) == 3);
  CHECK(strlen(adasum_report_schedule(here)) > 0);
  for (i = 0; i < size; ++i)
    CHECK(close_to(adasum_report_weight(here, (size_t)i, 2), adasum_report_weight(local, (size_t)i, 2), 1e-5));
  CHECK_OK(adasum_report_free(&here));
  CHECK_OK(adasum_report_free(&local));
  free(gradients);
  free(all);
}

/* Every name in the library's list. */
static void check_rules(void) {
  char names[1000], *at, *end;
  CHECK(strlen(adasum_rules()) < sizeof names);
  strcpy(names, adasum_rules());
  for (at = names; at; at = end) {
    end = strstr(at, ", ");
    if (end) {
      *end = '\0';
      end += 2;
    }
    check_rule(strcmp(at, "nearest_neighbour_mixing") == 0 ? "nearest_neighbour_mixing:byzantine=1,rule=geometric_median" : at);
  }
  check_rule("multi_krum:selected=2");
  check_rule(NULL);
}

/* Elements of every type: ones on rank 0, twos beside it, orthogonal. */
static void check_types(void) {
  int i;
  double d[64];
  uint16_t h[64], b[64];
  CHECK(size <= 64);
  for (i = 0; i < size; ++i) {
    d[i] = i == rank ? 1 : 0;
    h[i] = i == rank ? 0x3c00 : 0;
    b[i] = i == rank ? 0x3f80 : 0;
  }
  CHECK_OK(adasum_allreduce(MPI_COMM_WORLD, d, (size_t)size, ADASUM_DOUBLE, NULL, 0, NULL, NULL, NULL));
  CHECK_OK(adasum_allreduce(MPI_COMM_WORLD, h, (size_t)size, ADASUM_HALF, NULL, 0, NULL, NULL, NULL));
  CHECK_OK(adasum_allreduce(MPI_COMM_WORLD, b, (size_t)size, ADASUM_BFLOAT16, NULL, 0, NULL, NULL, NULL));
  for (i = 0; i < size; ++i) CHECK(d[i] == 1 && h[i] == 0x3c00 && b[i] == 0x3f80);
}

static void check_plan(void) {
  float data[length], expected[length], other[length];
  adasum_plan plan = ADASUM_NULL, copy;
  adasum_report report = ADASUM_NULL;
  void* buffer = NULL;
  int done = 0, run, disagreement;
  fill(expected, rank);
  CHECK_OK(adasum_allreduce(MPI_COMM_WORLD, expected, length, ADASUM_FLOAT, lengths, 3, "adasum", NULL, NULL));
  CHECK_OK(adasum_plan_create(MPI_COMM_WORLD, length, ADASUM_FLOAT, lengths, 3, "adasum", "check_agreement=yes", &plan));
  for (run = 0; run < 3; ++run) {
    fill(data, rank);
    CHECK_OK(adasum_plan_run(plan, data, length, ADASUM_FLOAT, run == 1 ? NULL : &report));
    CHECK(memcmp(data, expected, sizeof data) == 0);
  }
  CHECK(adasum_report_contributions(report) == (size_t)size);

  /* Beside other work. */
  CHECK_ERROR(adasum_plan_test(plan, &done), ADASUM_BAD_INPUT, "no reduction is in flight");
  CHECK_ERROR(adasum_plan_wait(plan, NULL), ADASUM_BAD_INPUT, "no reduction is in flight");
  fill(data, rank);
  CHECK_OK(adasum_plan_start(plan, data, length, ADASUM_FLOAT));
  CHECK_ERROR(adasum_plan_start(plan, data, length, ADASUM_FLOAT), ADASUM_BAD_INPUT, "in flight");
  CHECK_ERROR(adasum_allreduce(MPI_COMM_WORLD, other, length, ADASUM_FLOAT, NULL, 0, NULL, NULL, NULL), ADASUM_BAD_INPUT,
              "in flight");
  CHECK_ERROR(adasum_plan_test(plan, NULL), ADASUM_BAD_INPUT, "done is a null pointer");
  while (!done) CHECK_OK(adasum_plan_test(plan, &done));
  CHECK_OK(adasum_plan_wait(plan, &report));
  CHECK(memcmp(data, expected, sizeof data) == 0);

  /* In the plan's own memory. */
  CHECK_OK(adasum_plan_buffer(plan, &buffer));
  fill(buffer, rank);
  CHECK_OK(adasum_plan_run(plan, buffer, length, ADASUM_FLOAT, NULL));
  CHECK(same_everywhere(buffer));
  CHECK_ERROR(adasum_plan_buffer(plan, NULL), ADASUM_BAD_INPUT, "buffer is a null pointer");

  /* What is not the plan's: all ranks hear of it, and the plan goes on. */
  disagreement = size > 1 ? ADASUM_AGREEMENT_ERROR : ADASUM_BAD_INPUT;
  CHECK_ERROR(adasum_plan_run(plan, buffer, length - 1, ADASUM_FLOAT, NULL), disagreement, "59");
  CHECK_ERROR(adasum_plan_run(plan, buffer, length, ADASUM_DOUBLE, NULL), disagreement, "double");
  CHECK_ERROR(adasum_plan_run(plan, buffer, length, 77, NULL), disagreement, "unknown type");
  CHECK_OK(adasum_plan_start(plan, buffer, length, ADASUM_DOUBLE));
  CHECK_ERROR(adasum_plan_wait(plan, NULL), disagreement, "double");
  fill(buffer, rank);
  CHECK_OK(adasum_plan_run(plan, buffer, length, ADASUM_FLOAT, NULL));
  CHECK(same_everywhere(buffer));

  copy = plan;
  CHECK_OK(adasum_plan_free(&plan));
  CHECK(plan.id == 0);
  CHECK_OK(adasum_plan_free(&plan)); /* like free(NULL) */
  CHECK_ERROR(adasum_plan_free(&copy), ADASUM_BAD_INPUT, "has been freed");
  CHECK_ERROR(adasum_plan_free(NULL), ADASUM_BAD_INPUT, "null pointer");
  CHECK_ERROR(adasum_plan_run(plan, data, length, ADASUM_FLOAT, NULL), ADASUM_BAD_INPUT, "ADASUM_NULL");
  CHECK_ERROR(adasum_plan_run(copy, data, length, ADASUM_FLOAT, NULL), ADASUM_BAD_INPUT, "has been freed");
  CHECK_ERROR(adasum_plan_start(copy, data, length, ADASUM_FLOAT), ADASUM_BAD_INPUT, "has been freed");
  CHECK_ERROR(adasum_plan_test(copy, &done), ADASUM_BAD_INPUT, "has been freed");
  CHECK_ERROR(adasum_plan_wait(copy, NULL), ADASUM_BAD_INPUT, "has been freed");
  CHECK_ERROR(adasum_plan_buffer(copy, &buffer), ADASUM_BAD_INPUT, "has been freed");
  CHECK_OK(adasum_report_free(&report));
}

/* A rule's state goes on from run to run, and is the plan's own. */
static void check_state(void) {
  float first[length], second[length], again[length];
  adasum_plan plan = ADASUM_NULL;
  CHECK_OK(adasum_plan_create(MPI_COMM_WORLD, length, ADASUM_FLOAT, NULL, 0, "gradvac:beta=0.5", NULL, &plan));
  fill(first, rank);
  CHECK_OK(adasum_plan_run(plan, first, length, ADASUM_FLOAT, NULL));
  fill(second, rank);
  CHECK_OK(adasum_plan_run(plan, second, length, ADASUM_FLOAT, NULL));
  fill(again, rank);
  CHECK_OK(adasum_allreduce(MPI_COMM_WORLD, again, length, ADASUM_FLOAT, NULL, 0, "gradvac:beta=0.5", NULL, NULL));
  CHECK(memcmp(again, first, sizeof first) == 0);
  CHECK(size < 3 || memcmp(second, first, sizeof first) != 0);
  CHECK_OK(adasum_plan_free(&plan));
}

/* The last rank's call is wrong; the others' are right. Nobody waits, and all get an error, which says why if they compare. */
static void check_one_wrong(void) {
  float data[length], before[length];
  adasum_report freed = {((uint64_t)1 << 32) + 12345};
  adasum_plan plan = ADASUM_NULL;
  int which, compare, made;
  const int wrong = rank == size - 1;
  for (made = 0; made < 2; ++made)
    for (compare = 0; compare < 2; ++compare)
      for (which = 0; which < 7; ++which) {
        const char* text[] = {"no rule 'median'", "no 'wires'", "no type 17",    "lengths of 3 segments",
                              "60 elements",      "multiple",   "no such report"};
        const char* right = compare ? "check_agreement=yes" : "check_agreement=no";
        const char* options = wrong && which == 1 ? (compare ? "check_agreement=yes,wires=x" : "wires=x") : right;
        const char* rule = wrong && which == 0 ? "median" : "mean";
        const int type = wrong && which == 2 ? 17 : ADASUM_FLOAT;
        const size_t* cut = wrong && which == 3 ? NULL : lengths;
        const size_t count = wrong && which == 4 ? length - 1 : length;
        char* start = (char*)data + (wrong && which == 5 ? 1 : 0);
        int error;
        if (made == 1 && which > 4) continue;
        fill(data, rank);
        memcpy(before, data, sizeof data);
        error = made == 0
                    ? adasum_allreduce(MPI_COMM_WORLD, start, count, type, cut, 3, rule, options,
                                       wrong && which == 6 ? &freed : NULL)
                    : adasum_plan_create(MPI_COMM_WORLD, count, type, cut, 3, rule, options, &plan);
        if (wrong)
          CHECK_ERROR(error, ADASUM_BAD_INPUT, text[which]);
        else if (compare)
          CHECK_ERROR(error, ADASUM_AGREEMENT_ERROR, text[which]);
        else
          CHECK(error == ADASUM_COMMUNICATION_ERROR || error == ADASUM_AGREEMENT_ERROR);
        CHECK(memcmp(before, data, sizeof data) == 0 && plan.id == 0);
      }
  CHECK_ERROR(adasum_plan_create(MPI_COMM_WORLD, length, ADASUM_FLOAT, lengths, 3, NULL, NULL, rank == size - 1 ? NULL : &plan),
              rank == size - 1 ? ADASUM_BAD_INPUT : ADASUM_COMMUNICATION_ERROR, NULL);
  check_rule("mean"); /* the communicator works as before */
}

/* One rank's run of a plan is wrong. */
static void check_one_wrong_run(void) {
  float data[length];
  adasum_plan plan = ADASUM_NULL;
  const int wrong = rank == size - 1;
  int which, in_buffer;
  for (in_buffer = 0; in_buffer < 2; ++in_buffer)
    for (which = 0; which < 5; ++which) {
      void* own = data;
      int error;
      CHECK_OK(adasum_plan_create(MPI_COMM_WORLD, length, ADASUM_FLOAT, lengths, 3, "adasum", NULL, &plan));
      if (in_buffer) CHECK_OK(adasum_plan_buffer(plan, &own));
      fill(own, rank);
      if (wrong && which >= 3) {
        CHECK_OK(adasum_plan_start(plan, own, length, which == 3 ? ADASUM_HALF : 0));
        error = adasum_plan_wait(plan, NULL);
      } else {
        error = adasum_plan_run(plan, own, wrong && which == 0 ? length + 1 : length,
                                wrong && which == 1 ? ADASUM_DOUBLE : wrong && which == 2 ? -4 : ADASUM_FLOAT, NULL);
      }
      CHECK(error == (wrong ? ADASUM_BAD_INPUT : ADASUM_COMMUNICATION_ERROR));
      fill(own, rank);
      CHECK_OK(adasum_plan_run(plan, own, length, ADASUM_FLOAT, NULL));
      CHECK(same_everywhere(own));
      CHECK_OK(adasum_plan_free(&plan));
    }
}

static void check_communicators(void) {
  MPI_Comm half, copy;
  adasum_plan plan = ADASUM_NULL;
  float data[length];
  int i;
  CHECK_ERROR(adasum_allreduce(MPI_COMM_NULL, data, length, ADASUM_FLOAT, NULL, 0, NULL, NULL, NULL), ADASUM_BAD_INPUT,
              "MPI_COMM_NULL");
  CHECK_ERROR(adasum_allreduce(MPI_COMM_WORLD, data, (size_t)-1, ADASUM_FLOAT, NULL, 0, NULL, NULL, NULL),
              ADASUM_BAD_INPUT, "no memory holds");
  CHECK_ERROR(adasum_plan_create(MPI_COMM_WORLD, (size_t)-1, ADASUM_FLOAT, NULL, 0, NULL, NULL, &plan), ADASUM_BAD_INPUT,
              "no memory holds");
  CHECK_ERROR(adasum_set_timeout(MPI_COMM_WORLD, 0), ADASUM_BAD_INPUT, "timeout");
  CHECK_ERROR(adasum_set_timeout(MPI_COMM_WORLD, NAN), ADASUM_BAD_INPUT, "timeout");
  CHECK_OK(adasum_set_timeout(MPI_COMM_WORLD, 100));
  CHECK_OK(adasum_set_timeout(MPI_COMM_WORLD, INFINITY));
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
  MPI_Comm_dup(half, &copy); /* has a duplicate of its own, which is none yet */
  for (i = 0; i < 3; ++i) {
    fill(data, rank);
    CHECK_OK(adasum_allreduce(half, data, length, ADASUM_FLOAT, NULL, 0, "mean", NULL, NULL));
    fill(data, rank);
    CHECK_OK(adasum_allreduce(copy, data, length, ADASUM_FLOAT, NULL, 0, "mean", NULL, NULL));
  }
  MPI_Comm_free(&half);
  fill(data, rank);
  CHECK_OK(adasum_allreduce(copy, data, length, ADASUM_FLOAT, NULL, 0, "mean", NULL, NULL));
  MPI_Comm_free(&copy);
  /* More communicators than some MPI libraries have at a time: freed ones are given back. */
  for (i = 0; i < 3000; ++i) {
    MPI_Comm_dup(MPI_COMM_SELF, &copy);
    if (adasum_allreduce(copy, data, 1, ADASUM_FLOAT, NULL, 0, NULL, NULL, NULL) != ADASUM_SUCCESS) break;
    MPI_Comm_free(&copy);
  }
  CHECK(i == 3000);
}

static int times_asked;
static int not_now(void) {
  if (times_asked++ == 0 && rank > 0) MPI_Send(&rank, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
  return 0;
}

/* A rank that waits asks whether it is to go on. (That it stops if not: tests/communicators/mpi/waiting.cpp.) */
static void check_interruption(void) {
  float data[length];
  CHECK_OK(adasum_set_interruption(not_now));
  fill(data, rank);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) { /* comes when all others have waited for it */
    int other, number;
    for (other = 1; other < size; ++other) MPI_Recv(&number, 1, MPI_INT, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  CHECK_OK(adasum_allreduce(MPI_COMM_WORLD, data, length, ADASUM_FLOAT, NULL, 0, NULL, NULL, NULL));
  CHECK(rank == 0 || times_asked > 0);
  CHECK_OK(adasum_set_interruption(NULL));
}

/* An instruction set that is not known on one rank, before any call: the others do not wait. */
static void check_environment(void) {
  float data[length];
  fill(data, rank);
  if (rank == size - 1) setenv("ADASUM_ISA", "mmx", 1);
  CHECK_ERROR(adasum_allreduce(MPI_COMM_WORLD, data, length, ADASUM_FLOAT, NULL, 0, NULL, NULL, NULL),
              rank == size - 1 ? ADASUM_BAD_INPUT : ADASUM_COMMUNICATION_ERROR, rank == size - 1 ? "ADASUM_ISA is 'mmx'" : "rank");
  unsetenv("ADASUM_ISA");
  CHECK_OK(adasum_allreduce(MPI_COMM_WORLD, data, length, ADASUM_FLOAT, NULL, 0, NULL, NULL, NULL));
}

int main(int argc, char** argv) {
  float data[length];
  adasum_plan plan = ADASUM_NULL, second = ADASUM_NULL;
  int result;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_environment();
  check_types();
  check_rules();
  check_plan();
  check_state();
  check_one_wrong();
  check_one_wrong_run();
  check_communicators();
  check_interruption();
  /* Plans outlive MPI, but do nothing any more. */
  CHECK_OK(adasum_plan_create(MPI_COMM_WORLD, length, ADASUM_FLOAT, NULL, 0, NULL, NULL, &plan));
  CHECK_OK(adasum_plan_create(MPI_COMM_SELF, length, ADASUM_FLOAT, NULL, 0, NULL, NULL, &second));
  result = verdict(MPI_COMM_WORLD);
  MPI_Finalize();
  failures = 0;
  CHECK_ERROR(adasum_plan_run(plan, data, length, ADASUM_FLOAT, NULL), ADASUM_BAD_INPUT, "already been finalised");
  CHECK_ERROR(adasum_plan_start(second, data, length, ADASUM_FLOAT), ADASUM_BAD_INPUT, "already been finalised");
  CHECK_ERROR(adasum_allreduce(MPI_COMM_WORLD, data, length, ADASUM_FLOAT, NULL, 0, NULL, NULL, NULL), ADASUM_BAD_INPUT,
              "already been finalised");
  CHECK_OK(adasum_plan_free(&plan));
  return result + verdict(MPI_COMM_NULL); /* the second is never freed */
}
