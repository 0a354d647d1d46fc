// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//     mpirun --with-ft ulfm -n 4 09_survivors [RANK [STEP]]
//
// Training goes on when a rank dies: here RANK (2) is killed in step STEP (3) of 6. The other ranks make a new communicator
// and a new plan, and repeat the step. all_succeeded() and survivors_of() are to be copied into other programs. This needs an MPI
// that can continue when a rank dies (User Level Failure Mitigation; Bland et al., 2013): Open MPI 5 or later, which declares
// MPIX_... in <mpi-ext.h>. With any other, the program says so.

#include <mpi.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <adasum/mpi.hpp>  // includes <mpi-ext.h>, too

#ifdef OMPI_HAVE_MPI_EXT_FTMPI

#include <cmath>
#include <csignal>
#include <exception>
#include <numeric>

namespace {

void check(const char* call, int code) {
  if (code != MPI_SUCCESS) throw adasum::mpi_error(call, code);
}

/// Whether `good` holds on all ranks, and all are alive; the same on all that are. Works on a revoked communicator, too.
bool agree(MPI_Comm comm, bool good) {
  int flag = good;
  const int code = MPIX_Comm_agree(comm, &flag);
  int error_class = MPI_SUCCESS;
  if (code != MPI_SUCCESS) check("MPI_Error_class", MPI_Error_class(code, &error_class));
  if (error_class == MPIX_ERR_PROC_FAILED) return false;
  check("MPIX_Comm_agree", code);
  return flag != 0;
}

/// Whether a step went well on all ranks, none of which has died since the communicator was made; the same on all that are
/// alive. Collective over these; blocks until all have come. If `here` is false, whoever still waits in a reduction on this
/// communicator gets an error.
bool all_succeeded(const adasum::mpi_communicator& comm, bool here) {
  if (!here) comm.revoke();
  return agree(comm.native(), here);
}

/// The ranks that are alive, in the same order, with a communicator of their own and the timeout of `comm`. Collective: each
/// of them calls it after all_succeeded() has said no; it blocks until all have. What was made with `comm` is of no use
/// afterwards: make plans again.
adasum::mpi_communicator survivors_of(const adasum::mpi_communicator& comm) {
  comm.revoke();
  for (;;) {
    MPI_Comm alive = MPI_COMM_NULL;
    check("MPIX_Comm_shrink", MPIX_Comm_shrink(comm.native(), &alive));
    check("MPI_Comm_set_errhandler", MPI_Comm_set_errhandler(alive, MPI_ERRORS_RETURN));
    adasum::mpi_communicator made;
    std::exception_ptr problem;
    try {
      made = adasum::mpi_communicator(alive);  // and whatever else `comm` was made with
      made.set_timeout(comm.timeout());
    } catch (const adasum::communication_error&) {  // one more has died meanwhile
      MPIX_Comm_revoke(alive);                      // so that nobody waits there for this rank
    } catch (...) {
      problem = std::current_exception();
      MPIX_Comm_revoke(alive);
    }
    const bool all_made_it = agree(alive, static_cast<bool>(made));
    MPI_Comm_free(&alive);
    if (all_made_it) return made;
    if (problem) std::rethrow_exception(problem);
    if (made) made.revoke();
  }
}

constexpr std::size_t length = 100'000;
using vector = std::vector<float>;

/// The gradient of ½‖weights − target‖², each worker having a target of its own.
vector gradient_of(const vector& weights, int worker) {
  vector gradient(length);
  for (std::size_t x = 0; x < length; ++x)
    gradient[x] = weights[x] - static_cast<float>((x + 7 * static_cast<std::size_t>(worker)) % 5);
  return gradient;
}

/// Whether the result is that of these workers, up to rounding.
bool is_right(const vector& result, const vector& weights, const std::vector<int>& workers) {
  std::vector<vector> gradients;
  for (const int worker : workers) gradients.push_back(gradient_of(weights, worker));
  vector expected(length);
  adasum::adasum_tree(adasum::serial_space{}, gradients, expected);
  for (std::size_t x = 0; x < length; ++x)
    if (!(std::abs(result[x] - expected[x]) <= 1e-4f)) return false;
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  // MPI ends the program when a rank dies, unless errors are returned.
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int victim = argc > 1 ? std::atoi(argv[1]) : 2;
  const int fatal_step = argc > 2 ? std::atoi(argv[2]) : 3;
  int worker = 0, count = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &worker);
  MPI_Comm_size(MPI_COMM_WORLD, &count);
  std::vector<int> workers(static_cast<std::size_t>(count));  // those that are alive
  std::iota(workers.begin(), workers.end(), 0);

  vector weights(length, 1);
  adasum::mpi_communicator comm{MPI_COMM_WORLD};
  adasum::allreduce_plan<float> plan;
  bool right = true;

  for (int step = 1; step <= 6;) {
    auto gradient = gradient_of(weights, worker);
    if (worker == victim && step == fatal_step) std::raise(SIGKILL);
    bool good = true;
    try {
      if (plan.is_empty()) plan = adasum::plan_allreduce<float>(adasum::serial_space{}, comm, length);
      plan(gradient);
    } catch (const adasum::communication_error&) {
      good = false;
    }
    if (!all_succeeded(comm, good)) {  // the same answer on all ranks: none has changed its weights yet
      plan = {};                       // what was made with the old communicator goes with it
      comm = survivors_of(comm);
      std::erase(workers, victim);
      if (comm.rank() == 0) std::printf("step %d failed: again, on %d ranks\n", step, comm.size());
      continue;
    }
    right = right && is_right(gradient, weights, workers);
    for (std::size_t x = 0; x < length; ++x) weights[x] -= 0.25f * gradient[x];
    if (comm.rank() == 0) std::printf("step %d, on %d ranks: weight 0 is %.3f\n", step, comm.size(), weights[0]);
    ++step;
  }

  right = right && comm.size() == count - 1;
  // Not MPI_Finalize, which in Open MPI 6.0 sometimes waits for the dead rank. All other ranks have come here.
  right = all_succeeded(comm, right);
  if (comm.rank() == 0) std::puts(right ? "all results are right" : "results are wrong");
  std::fflush(stdout);
  std::_Exit(right ? EXIT_SUCCESS : EXIT_FAILURE);
}

#else

int main() {
  std::puts("this MPI cannot go on when a rank has died");
  return 77;
}

#endif
