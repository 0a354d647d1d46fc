// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//     mpirun -n P adasum_bench_allreduce [largest number of floats] [seconds for each number]
//
// adasum_allreduce against MPI_Allreduce(MPI_IN_PLACE, MPI_SUM) of the same MPI, on the same ordinary buffer (direct:
// on the plan's own one). A round runs the sum and then each of ours, so that all of them meet the machine in the same
// mood; rounds repeat until the time is used. One figure is a batch between two looks at the clock: after a barrier,
// the maximum over the ranks. Rank 0 prints JSON with all of them. A program of its own and not Google Benchmark, since
// all ranks must take the same steps. Before the first figure all ranks work for a while: the processors of a virtual
// machine that was idle may share a core until then, which makes short messages four times as fast as later.

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
constexpr adasum::options checked{.check_agreement = true};
constexpr adasum::options unmeasured{.check_agreement = false, .measure = adasum::measuring::when_needed};

/// Every way to reduce `length` floats; the first is the baseline.
std::vector<contender> contenders(const adasum::mpi_communicator& comm, std::size_t length) {
  const adasum::serial_space exec;
  const auto segments = adasum::segments::whole(length);
  std::vector<contender> all;
  const auto add_plan = [&](const char* name, const auto& rule, const auto& schedule, const adasum::options& choices,
                            bool in_its_buffer = false) {
    const auto make = [&] { return adasum::plan_allreduce<float>(exec, comm, segments, rule, schedule, choices); };
    all.push_back(planned(name, length, make, in_its_buffer));
  };
  const adasum::rules::adasum rule;
  const adasum::schedules::automatic automatic;

  all.push_back(sum_on("MPI_Allreduce", MPI_COMM_WORLD));
  add_plan("recursive_doubling", rule, adasum::schedules::recursive_doubling{}, unchecked);
  add_plan("recursive_halving", rule, adasum::schedules::recursive_halving{}, unchecked);
  add_plan("all_to_all", rule, adasum::schedules::all_to_all{}, unchecked);
  add_plan("messages", rule, adasum::schedules::automatic{.in_place = false}, unchecked);
  add_plan("automatic", rule, automatic, unchecked);
  const auto add_call = [&](const char* name, bool keeps_plan) {
    adasum::options choices = unchecked;
    choices.keep_plan = keeps_plan;
    all.push_back(called(name, length, [=](std::span<float> gradient) {
      return adasum::adasum_allreduce(exec, comm, gradient, segments, automatic, choices);
    }));
  };
  add_call("one_shot", false);
  add_call("again", true);
  if (length == smallest) add_plan("automatic_checked", rule, automatic, checked);
  add_plan("sum", adasum::rules::sum{}, automatic, unmeasured);
  add_plan("shared_memory", rule, automatic, unchecked, true);
  add_plan("direct_sum", adasum::rules::sum{}, automatic, unmeasured, true);
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {
    const std::size_t largest = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : default_largest;
    const double seconds = argc > 2 ? std::strtod(argv[2], nullptr) : default_seconds;
    const adasum::mpi_communicator comm{MPI_COMM_WORLD};
    warm_up(3 * seconds);
    print_all(mpi_version().c_str(), comm.rank(), comm.size(), largest, seconds,
              [&](std::size_t length) { return contenders(comm, length); });
  }
  MPI_Finalize();
}
