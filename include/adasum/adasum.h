/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef ADASUM_ADASUM_H
#define ADASUM_ADASUM_H

#include <stddef.h>
#include <stdint.h>

/* A program that has no MPI, and so no use for the calls that take a communicator, defines ADASUM_WITHOUT_MPI. */
#ifndef ADASUM_WITHOUT_MPI
#include <mpi.h>
#endif

/**
 * @file
 * The library for C (C99) and whatever calls C: adaptive summation of gradients, and all other rules, on one process and among
 * the ranks of an MPI communicator. Link libadasum (CMake: adasum::c). docs/c_and_fortran.md is a short introduction; what the
 * calls compute is in docs/algorithms.md, the rules are in docs/rules.md.
 *
 * **Errors.** Functions that return int, other than adasum_report_finite, return ADASUM_SUCCESS, or say what went wrong by
 * one of the numbers below; they never end the program. adasum_last_error() has the message. If something is wrong on one
 * rank, the others are told: no rank waits for one that has failed. (The exception is a call that cannot even start: its
 * communicator or plan cannot be used.)
 *
 * **Arrays.** An array is contiguous, and has `count` elements of one type. It is cut into segments, one for each layer, whose
 * lengths add up to `count`; lengths = NULL and segments = 0 make the whole array one segment.
 *
 * **Rules and options** are text. A rule is a name, and after a colon its parameters: "adasum", "centred_clipping:radius=2",
 * "nearest_neighbour_mixing:byzantine=1,rule=multi_krum:byzantine=1". NULL is "adasum". adasum_rules() lists the names;
 * docs/rules.md names the parameters. Options are name=value, separated by commas, in any order; NULL is the defaults, which
 * come first here:
 *
 * - `check_agreement=no`, yes: ranks compare lengths, segments, rules and options at each call, and say in what they differ.
 * - `measure=always`, when_needed: reports of the rules sum and mean then hold no norms.
 * - `nonfinite=propagate`, exclude, raise: what happens to Inf and NaN.
 * - `wire=same`, bfloat16, binary16: how float elements travel.
 * - `timeout=60`: seconds that a rank waits in shared memory in the middle of a reduction; elsewhere,
 *   adasum_set_timeout counts.
 * - `keep_plan=yes`, no: a single call is set up anew each time.
 *
 * All ranks must give the same rule and options. An unknown name is an error, whose message lists the known names.
 *
 * **Threads.** A communicator and its plans serve one thread at a time, which must be allowed to call MPI. Error
 * messages are kept for each thread. Everything else may be called from any thread. */

#if defined(__GNUC__)
#define ADASUM_API __attribute__((visibility("default")))
#else
#define ADASUM_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** What calls return, named after the exceptions of the C++ library. Values never change; new ones may be added. */
enum adasum_error_code {
  ADASUM_SUCCESS = 0,             /**< all went well */
  ADASUM_BAD_INPUT = 1,           /**< an argument cannot be used; the data are unchanged */
  ADASUM_AGREEMENT_ERROR = 2,     /**< ranks do not agree, or one has bad input; the same on all ranks; data unchanged */
  ADASUM_NONFINITE_ERROR = 3,     /**< Inf or NaN, with nonfinite=raise; the same on all ranks; data unchanged */
  ADASUM_SHARED_MEMORY_ERROR = 4, /**< no room for memory that ranks share */
  ADASUM_COMMUNICATION_ERROR = 5, /**< another rank failed; the data are unspecified */
  ADASUM_TIMEOUT_ERROR = 6,       /**< another rank did not come in time; see adasum_set_timeout */
  ADASUM_MPI_ERROR = 7,           /**< a function of MPI failed */
  ADASUM_OUT_OF_MEMORY = 8,       /**< there is too little memory */
  ADASUM_OTHER_ERROR = 9          /**< anything else */
};

/** Types of elements. Halves are IEEE binary16, of any C type that has these 16 bits. */
enum adasum_type {
  ADASUM_DOUBLE = 1,  /**< double */
  ADASUM_FLOAT = 2,   /**< float */
  ADASUM_HALF = 3,    /**< 16 bits, IEEE binary16 */
  ADASUM_BFLOAT16 = 4 /**< 16 bits, the upper half of a float */
};

/** An opaque handle of a plan, like MPI's. It is an error to use one that is ADASUM_NULL (other than to free it), that was
 * freed, or that is a copy of one that was freed. Begin with  adasum_plan plan = ADASUM_NULL; */
typedef struct adasum_plan {
  uint64_t id; /**< not for users */
} adasum_plan;
/** An opaque handle of a report, likewise. A call that is given the address of a handle fills in what it found: a new report
 * where the handle is ADASUM_NULL, else that report is overwritten. So one handle serves a whole loop, and is freed at its
 * end. If the call fails, nothing changes. For a report that cannot be used, or an index that does not exist, numbers
 * are NaN, counts 0 and texts "", and adasum_last_error() says what was wrong. */
typedef struct adasum_report {
  uint64_t id; /**< not for users */
} adasum_report;
/** No plan, or no report. */
#define ADASUM_NULL \
  { 0 }

/* -- the library --------------------------------------------------------------------------------------------------- */

/** The version of the library that runs: 10000 major + 100 minor + patch. */
ADASUM_API unsigned adasum_version(void);
/** What this library is, for reports of errors: lines "name: value" of its version and commit, the compiler, the vector
 * instructions that it uses, or why it cannot (ADASUM_ISA has a value that is not known), and those that this processor has, the
 * environment variables that it knows, whether it has the rules that need Eigen, and its MPI. The text stays. */
ADASUM_API const char* adasum_build_information(void);
/** The names of all rules, separated by ", ". */
ADASUM_API const char* adasum_rules(void);
/** "ADASUM_BAD_INPUT" for ADASUM_BAD_INPUT, and so on; "unknown error" for other numbers. */
ADASUM_API const char* adasum_error_name(int error);
/** What went wrong in the last call on this thread that failed; "" if none has. Stays until another one fails here. */
ADASUM_API const char* adasum_last_error(void);

/* -- on one process ------------------------------------------------------------------------------------------------ */

/** out = the adaptive sum of a and b, segment by segment: (1 - a.b / (2 a.a)) a + (1 - a.b / (2 b.b)) b. Returns when the
 * result is there.
 * @param a        `count` elements of `type`, an adasum_type
 * @param b        likewise
 * @param out      likewise; may be a or b
 * @param lengths   the lengths of the segments, `segments` numbers; NULL and 0: one segment
 * @return an adasum_error_code */
ADASUM_API int adasum_pair(const void* a, const void* b, void* out, size_t count, int type, const size_t* lengths,
                           size_t segments);

/** out = the combination of any number of gradients under a rule. `out` may be one of them. Of the options, only measure
 * and nonfinite have an effect here. Returns when the result is there.
 * @param gradients  the addresses of `gradient_count` arrays of `count` elements of `type`
 * @param lengths   the lengths of the segments, `segments` numbers; NULL and 0: one segment
 * @param rule      a text, or NULL
 * @param options   a text, or NULL
 * @param report    NULL if none is wanted; else it receives one: see adasum_report
 * @return an adasum_error_code */
ADASUM_API int adasum_combine(const void* const* gradients, size_t gradient_count, void* out, size_t count, int type,
                              const size_t* lengths, size_t segments, const char* rule, const char* options,
                              adasum_report* report);

/* -- among ranks --------------------------------------------------------------------------------------------------- */

#ifndef ADASUM_WITHOUT_MPI
/** Which MPI this library uses, as MPI_Get_library_version says it; "" if that fails. May be called before MPI_Init. */
ADASUM_API const char* adasum_mpi_library(void);

/** Combines the gradients of all ranks under a rule, in place; all ranks get the same bits. In place of
 * MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_FLOAT, MPI_SUM, comm):
 *
 *     adasum_allreduce(comm, data, count, ADASUM_FLOAT, lengths, segments, "adasum", NULL, NULL);
 *
 * Collective over comm; returns when the result is there. Messages travel in a duplicate of comm, which the first call on comm
 * makes (by MPI_Comm_dup; that call is collective in any case), and MPI_Comm_free(&comm) or MPI_Finalize frees. Calls
 * with the same arguments reuse a plan that is kept there, if the rule has no parameters; for other rules, make a plan
 * yourself. A rule with state (the momentum of adacons, for instance) starts afresh in each call; in a plan, it keeps its
 * state from run to run.
 * @param data      `count` elements of `type`, an adasum_type
 * @param lengths   the lengths of the segments, `segments` numbers; NULL and 0: one segment
 * @param rule      a text, or NULL
 * @param options   a text, or NULL
 * @param report    NULL if none is wanted; else it receives one: see adasum_report
 * @return an adasum_error_code */
ADASUM_API int adasum_allreduce(MPI_Comm comm, void* data, size_t count, int type, const size_t* lengths,
                                size_t segments, const char* rule, const char* options, adasum_report* report);

/** Sets how many seconds at most this rank waits for others, in all calls on comm from now on. The default, INFINITY,
 * means for ever. After an ADASUM_TIMEOUT_ERROR, messages may still be in flight: comm and its plans cannot be used any
 * more, the data must neither be changed nor freed, and the program should end by MPI_Abort. */
ADASUM_API int adasum_set_timeout(MPI_Comm comm, double seconds);

/** From now on, a rank that waits for others calls requested() on its thread, some twenty times a second. If that returns
 * anything but 0, the wait ends as if its timeout had passed. For programs that respond to signals, such as interpreters. Set
 * it before the first communication; it applies to the whole process. NULL, the default, turns it off. */
ADASUM_API int adasum_set_interruption(int (*requested)(void));

/* -- plans: a reduction that is set up once and run many times ----------------------------------------------------- */

/** Makes a plan; nothing is allocated afterwards. Collective over comm, and waits for all ranks. Arguments are those of
 * adasum_allreduce; the handle is overwritten, and not freed. */
ADASUM_API int adasum_plan_create(MPI_Comm comm, size_t count, int type, const size_t* lengths, size_t segments,
                                  const char* rule, const char* options, adasum_plan* plan);
#endif

/** Reduces data in place, on all ranks together; returns when the result is there. `count` and `type` are those of the plan. */
ADASUM_API int adasum_plan_run(adasum_plan plan, void* data, size_t count, int type, adasum_report* report);

/** Begins what adasum_plan_run does, without waiting for other ranks, so that other work can go on meanwhile. The data belong
 * to the plan until adasum_plan_wait has returned. Each start that returns ADASUM_SUCCESS must be followed by one wait. A start
 * also returns ADASUM_SUCCESS if its data, count or type cannot be used: this rank then withdraws from the reduction, and wait
 * returns the error. Only one plan may be in flight on a communicator at a time. */
ADASUM_API int adasum_plan_start(adasum_plan plan, void* data, size_t count, int type);
/** Continues as far as is possible without waiting. Sets `done` to 1 if adasum_plan_wait would return at once, else to 0. */
ADASUM_API int adasum_plan_test(adasum_plan plan, int* done);
/** Waits for the result. If adasum_plan_start was given unusable arguments, returns their error. */
ADASUM_API int adasum_plan_wait(adasum_plan plan, adasum_report* report);

/** Memory for `count` elements that belongs to the plan. If possible, the ranks share it; then gradients that are computed
 * there need not be copied. The first call is collective. In each later run, either all ranks reduce their buffers or none
 * does. */
ADASUM_API int adasum_plan_buffer(adasum_plan plan, void** buffer);

/** Frees the plan and sets it to ADASUM_NULL, if it is not so already. Not collective. A plan in flight withdraws from its reduction, and
 * adasum_plan_wait fails on the other ranks. May be called after MPI_Finalize. */
ADASUM_API int adasum_plan_free(adasum_plan* plan);

/* -- reports ------------------------------------------------------------------------------------------------------ */

/** In place of a segment: all of them together. */
#define ADASUM_ALL_SEGMENTS ((size_t)-1)

/** How many gradients were combined. */
ADASUM_API size_t adasum_report_contributions(adasum_report report);
/** How many segments they have. */
ADASUM_API size_t adasum_report_segments(adasum_report report);
/** The name of the rule. The text stays until the report is overwritten or freed. */
ADASUM_API const char* adasum_report_rule(adasum_report report);
/** The name of the schedule that was chosen to run; "" for a combination on one process. The text stays until the report is
 * overwritten or freed. */
ADASUM_API const char* adasum_report_schedule(adasum_report report);
/** |result|^2 / sum of |g_i|^2: under Adasum, 1 where gradients are orthogonal, 1/n where they are equal. */
ADASUM_API double adasum_report_orthogonality(adasum_report report, size_t segment_or_all);
/** |g_i| in a segment, g_i being the gradient with this number. */
ADASUM_API double adasum_report_norm(adasum_report report, size_t contribution, size_t segment);
/** The weight c_i in a segment: result = sum of c_i g_i. */
ADASUM_API double adasum_report_weight(adasum_report report, size_t contribution, size_t segment);
/** |result| in a segment. */
ADASUM_API double adasum_report_result_norm(adasum_report report, size_t segment);
/** 1 if every gradient was finite, else 0. */
ADASUM_API int adasum_report_finite(adasum_report report);
/** How many gradients were left out (nonfinite=exclude). The numbers of the first of them, `room` at most, are written
 * to ranks. */
ADASUM_API size_t adasum_report_excluded(adasum_report report, int* ranks, size_t room);
/** The whole report as one line of JSON, whose keys are listed in docs/guide/reports.md; `step` is the caller's own
 * count. Returns its length without the final '\0', as snprintf does, and writes as much as there is room for, always
 * with a '\0'; text = NULL and room = 0 ask for the length. */
ADASUM_API size_t adasum_report_json(adasum_report report, int64_t step, char* text, size_t room);
/** Frees the report and sets it to ADASUM_NULL, if it is not so already. */
ADASUM_API int adasum_report_free(adasum_report* report);

#ifdef __cplusplus
}
#endif

#endif
