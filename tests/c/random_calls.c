/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* random_calls CALLS SEED: calls with random arguments, mostly wrong ones. Each returns, on every rank; if one rank is told
 * that its input is bad, no rank is told that all went well; and the data of a call that failed so are unchanged. */
#include "check.h"

enum { most = 40 };
static int rank, size;

/* Which call comes is the same on all ranks (shared), what is wrong with it is not (own). */
static uint64_t shared_state, own_state;
static unsigned below(uint64_t* state, unsigned limit) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(*state >> 33) % limit;
}
static int own(unsigned limit) { return (int)below(&own_state, limit); }

static const char* text_by_chance(const char* right, const char* const* wrong, unsigned count) {
  return own(4) != 0 ? right : wrong[own(count)];
}
static const char* rule_by_chance(void) {
  static const char* const right[] = {NULL, "mean", "adasum", "pcgrad", "centred_clipping:radius=2"};
  static const char* const wrong[] = {"", "median", "mean:x=1", ":", "mean:", "pcgrad:seed=-1", "pcgrad:seed=1,seed=2",
                                      "a:b:c=,=", "nearest_neighbour_mixing:rule=", "nearest_neighbour_mixing:rule=rule=rule"};
  return text_by_chance(right[below(&shared_state, 5)], wrong, 10);
}
static const char* options_by_chance(void) {
  static const char* const right[] = {NULL, "check_agreement=yes", "measure=when_needed", "nonfinite=exclude", "keep_plan=no"};
  static const char* const wrong[] = {"x", "timeout=0", "timeout=-1", "timeout=x", "wire=x", ",", "=", "check_agreement=2"};
  return text_by_chance(right[below(&shared_state, 5)], wrong, 8);
}

int main(int argc, char** argv) {
  static double memory[3][most + 1], before[most + 1];
  static const size_t right[] = {10, 0, most - 10}, wrong[] = {10, 1, most - 10};
  const long calls = argc > 1 ? atol(argv[1]) : 1000;
  const unsigned long seed = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
  adasum_plan plan = ADASUM_NULL;
  adasum_report report = ADASUM_NULL;
  long call, counts[10] = {0};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  shared_state = seed;
  own_state = seed * 1000 + (uint64_t)rank;
  for (call = 0; call < calls; ++call) {
    const int right_type = 1 + (int)below(&shared_state, 4), kind = (int)below(&shared_state, 6);
    const int type = own(12) == 0 ? own(7) - 1 : right_type;
    const size_t count = own(12) == 0 ? (size_t)own(most) : most;
    const size_t* lengths = own(12) == 0 ? (own(2) ? NULL : wrong) : right;
    const size_t segments = own(12) == 0 ? (size_t)own(4) : 3;
    const char *rule = rule_by_chance(), *options = options_by_chance();
    adasum_report freed = {(uint64_t)own(1000) << 32 | (uint64_t)own(10)};
    adasum_report* to = own(12) == 0 ? &freed : own(2) ? &report : NULL;
    const void* gradients[3] = {memory[0], memory[1], memory[2]};
    char* data = (char*)memory[0] + (own(12) == 0 ? own(8) : 0);
    adasum_plan* made = own(20) == 0 ? NULL : &plan;
    int error, worst, least, i;
    if (own(12) == 0) data = NULL;
    if (own(20) == 0) gradients[own(3)] = NULL;
    for (i = 0; i <= most; ++i) memory[0][i] = memory[1][i] = memory[2][i] = 0; /* a number in every type */
    memory[0][0] = 1;
    memcpy(before, memory[0], sizeof before);
    switch (kind) {
      case 0: error = adasum_allreduce(MPI_COMM_WORLD, data, count, type, lengths, segments, rule, options, to); break;
      case 1: error = adasum_plan_create(MPI_COMM_WORLD, count, type, lengths, segments, rule, options, made); break;
      case 2:
        error = adasum_combine(own(9) ? gradients : NULL, (size_t)own(4), memory[1], count, type, lengths, segments, rule,
                               options, to);
        break;
      case 3: error = adasum_pair(data, gradients[1], memory[2], count, type, lengths, segments); break;
      case 4: { /* numbers of any kind */
        const size_t i0 = (size_t)own(5) - 1, i1 = (size_t)own(5) - 1;
        (void)adasum_report_norm(freed, i0, i1);
        (void)adasum_report_weight(report, i0, i1);
        (void)adasum_report_orthogonality(report, i1);
        (void)adasum_report_result_norm(report, i1);
        (void)adasum_report_json(report, own(99), (char*)memory[1], (size_t)own(sizeof memory[1]));
        error = own(2) ? adasum_report_free(&freed) : own(30) ? ADASUM_BAD_INPUT : adasum_report_free(&report);
        break;
      }
      default: { /* plans that are none */
        adasum_plan none = {(uint64_t)own(1000) << 32 | (uint64_t)(1000000 + own(10))};
        int done;
        void* buffer;
        const int errors[] = {adasum_plan_run(none, data, count, type, to), adasum_plan_start(none, data, count, type),
                              adasum_plan_test(none, &done), adasum_plan_wait(none, to), adasum_plan_buffer(none, &buffer),
                              adasum_plan_free(&none)};
        for (i = 0; i < 6; ++i) CHECK(errors[i] == ADASUM_BAD_INPUT);
        error = ADASUM_BAD_INPUT;
      }
    }
    CHECK(error >= 0 && error < ADASUM_OTHER_ERROR && error != ADASUM_OUT_OF_MEMORY);
    ++counts[error];
    if (kind > 1) continue;
    MPI_Allreduce(&error, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(&error, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    CHECK((worst == ADASUM_SUCCESS) == (least == ADASUM_SUCCESS));
    if (error != ADASUM_SUCCESS) CHECK(memcmp(before, memory[0], sizeof before) == 0);
    if (kind == 1 && error == ADASUM_SUCCESS) {
      /* A run with what is not the plan's. */
      error = adasum_plan_run(plan, data, own(4) ? most : (size_t)own(most), own(4) ? right_type : own(7), to);
      ++counts[error];
      MPI_Allreduce(&error, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
      MPI_Allreduce(&error, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
      CHECK((worst == ADASUM_SUCCESS) == (least == ADASUM_SUCCESS));
      CHECK_OK(adasum_plan_free(&plan));
    }
  }
  if (rank == 0)
    printf("%ld calls: %ld succeeded, %ld bad input, %ld disagreed, %ld failed since others did\n", calls, counts[0], counts[1],
           counts[2], counts[5]);
  CHECK(calls < 1000 || (counts[0] > calls / 100 && counts[1] > calls / 100));
  call = verdict(MPI_COMM_WORLD);
  MPI_Finalize();
  return (int)call;
}
