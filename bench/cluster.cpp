// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//     scripts/cluster run adasum_bench_cluster [largest number of floats] [seconds for each number]
//
// Every schedule between nodes, as a plan, as a single call that is set up each time, and as one that finds its plan
// again, against MPI_Allreduce(MPI_IN_PLACE, MPI_SUM) of the same MPI and, with Open MPI, against each of the algorithms
// that its component `tuned` can be told to use (coll_tuned_allreduce_algorithm;
// OMPI_MCA_coll_tuned_use_dynamic_rules=1 lets it be told). Measured in turns, as contenders.hpp says. Rank 0 prints JSON with all figures: each run's time on the slowest rank and on the quickest.

#include <mpi.h>

#include <adasum/adasum.hpp>
#include <adasum/communicators/mpi.hpp>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "contenders.hpp"
#include "mpi_version.hpp"

namespace {

constexpr adasum::options unchecked{.check_agreement = false};

/// A communicator whose MPI_Allreduce uses one algorithm.
struct forced_sum {
  std::string algorithm;
  MPI_Comm comm = MPI_COMM_NULL;
};

/// One for each algorithm that MPI can be told to use. The component reads the choice when a communicator is made.
std::vector<forced_sum> forced_sums() {
  std::vector<forced_sum> all;
#ifdef OPEN_MPI
  const char* const may_choose = std::getenv("OMPI_MCA_coll_tuned_use_dynamic_rules");
  int index = 0, provided = 0, count = 0;
  if (may_choose == nullptr || std::string(may_choose) != "1") return all;
  if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS) return all;
  MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
  if (MPI_T_cvar_get_index("coll_tuned_allreduce_algorithm", &index) == MPI_SUCCESS &&
      MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) == MPI_SUCCESS) {
    const char* const names[] = {"default", "basic_linear",   "nonoverlapping", "recursive_doubling",
                                 "ring",    "segmented_ring", "rabenseifner"};
    for (int algorithm = 1; algorithm < 7; ++algorithm) {
      if (MPI_T_cvar_write(handle, &algorithm) != MPI_SUCCESS) continue;
      forced_sum one{names[algorithm]};
      MPI_Comm_dup(MPI_COMM_WORLD, &one.comm);
      all.push_back(one);
    }
    const int standard = 0;
    MPI_T_cvar_write(handle, &standard);
    MPI_T_cvar_handle_free(&handle);
  }
  MPI_T_finalize();
#endif
  return all;
}

/// Every way to reduce `length` floats; the first is the baseline.
std::vector<contender> contenders(const adasum::mpi_communicator& comm, const std::vector<forced_sum>& forced,
                                  std::size_t length) {
  const adasum::serial_space exec;
  const auto segments = adasum::segments::whole(length);
  std::vector<contender> all{sum_on("MPI_Allreduce", MPI_COMM_WORLD)};
  for (const auto& one : forced) all.push_back(sum_on("MPI_Allreduce " + one.algorithm, one.comm));

  const auto add = [&](const std::string& name, const auto& schedule, bool has_buffer = false) {
    const auto make = [&] { return adasum::plan_allreduce<float>(exec, comm, segments, schedule, unchecked); };
    all.push_back(planned("plan " + name, length, make));
    if (has_buffer) all.push_back(planned("buffer " + name, length, make, true));
  };
  using namespace adasum::schedules;
  add("automatic", automatic{});
  for (const bool again : {false, true}) {
    adasum::options choices = unchecked;
    choices.keep_plan = again;
    all.push_back(called(again ? "call again" : "call", length, [=](std::span<float> gradient) {
      return adasum::adasum_allreduce(exec, comm, gradient, segments, choices);
    }));
  }
  add("recursive_doubling", recursive_doubling{});
  add("recursive_halving", recursive_halving{});
  if (comm.size() > 2) add("recursive_halving{4}", recursive_halving{.radix = 4});
  add("all_to_all", all_to_all{});
  add("hierarchical", hierarchical{comm.nodes(), adasum::rules::adasum{}}, true);
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {
    const std::size_t largest = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : default_largest;
    const double seconds = argc > 2 ? std::strtod(argv[2], nullptr) : default_seconds;
    const adasum::mpi_communicator comm{MPI_COMM_WORLD};
    auto forced = forced_sums();
    warm_up(seconds);
    print_all(mpi_version().c_str(), comm.rank(), comm.size(), largest, seconds,
              [&](std::size_t length) { return contenders(comm, forced, length); });
    for (auto& one : forced) MPI_Comm_free(&one.comm);
    std::fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Finalize();
}
