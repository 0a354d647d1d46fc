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
#include <adasum/comm/mpi.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "agreed.hpp"
#include "mpi_version.hpp"
#include "noise.hpp"

namespace {

constexpr std::size_t smallest = 256, growth = 4, default_largest = std::size_t{1} << 24;
constexpr double default_seconds = 3;
constexpr int fewest_rounds = 5, most_rounds = 301;

/// A batch lasts at least so long, unless it gets too many runs.
constexpr double batch_seconds = 200e-6;
/// A sum in place grows by the number of ranks at every run: 32 of them keep floats of 15 ranks finite.
constexpr int largest_batch = 32;

struct contender {
  std::string name;
  std::function<void(std::span<float>)> run;
  std::string schedule = {};         // the one that runs
  std::vector<double> seconds = {};  // of one run, for each round
  std::span<float> own = {};         // where its gradient must lie; empty: anywhere
};

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
    using plan_type = decltype(adasum::plan_allreduce<float>(exec, comm, segments, rule, schedule, choices));
    const std::shared_ptr<plan_type> plan(
        new plan_type(adasum::plan_allreduce<float>(exec, comm, segments, rule, schedule, choices)));
    all.push_back({name, [plan](std::span<float> gradient) { (*plan)(gradient); }});
    std::vector<float> gradient(length);
    all.back().schedule = (*plan)(gradient).schedule();
    if (in_its_buffer) all.back().own = plan->buffer();
  };
  const adasum::rules::adasum rule;
  const adasum::schedules::automatic automatic;

  all.push_back({"MPI_Allreduce", [](std::span<float> gradient) {
                   MPI_Allreduce(MPI_IN_PLACE, gradient.data(), static_cast<int>(gradient.size()), MPI_FLOAT, MPI_SUM,
                                 MPI_COMM_WORLD);
                 }});
  add_plan("recursive_doubling", rule, adasum::schedules::recursive_doubling{}, unchecked);
  add_plan("recursive_halving", rule, adasum::schedules::recursive_halving{}, unchecked);
  add_plan("all_to_all", rule, adasum::schedules::all_to_all{}, unchecked);
  add_plan("messages", rule, adasum::schedules::automatic{.in_place = false}, unchecked);
  add_plan("automatic", rule, automatic, unchecked);
  all.push_back({"one_shot",
                 [=](std::span<float> gradient) {
                   adasum::adasum_allreduce(exec, comm, gradient, segments, automatic, unchecked);
                 },
                 "messages"});
  if (length == smallest) add_plan("automatic_checked", rule, automatic, checked);
  add_plan("sum", adasum::rules::sum{}, automatic, unmeasured);
  add_plan("shared_memory", rule, automatic, unchecked, true);
  add_plan("direct_sum", adasum::rules::sum{}, automatic, unmeasured, true);
  return all;
}

/// Seconds of one run, the slowest rank's, out of a batch from fresh gradients.
double time_batch(const contender& one, int batch, std::span<const float> fresh, std::span<float> anywhere) {
  const auto gradient = one.own.empty() ? anywhere : one.own;
  std::ranges::copy(fresh, gradient.begin());
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < batch; ++i) one.run(gradient);
  double seconds = (MPI_Wtime() - start) / batch;
  MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return seconds;
}

/// Fills in contender::seconds. Returns how many runs made one batch.
int run_rounds(std::vector<contender>& all, std::size_t length, int rank, double budget) {
  std::vector<float> fresh(length), gradient(length);
  fill_with_noise(std::span(fresh), static_cast<std::uint32_t>(rank));
  const double start = MPI_Wtime();
  for (const auto& one : all) time_batch(one, 1, fresh, gradient);
  const double once = agreed(time_batch(all.front(), 4, fresh, gradient));
  const int batch = std::clamp(static_cast<int>(batch_seconds / once), 1, largest_batch);
  for (int round = 0; round < most_rounds; ++round) {
    if (agreed(round >= fewest_rounds && MPI_Wtime() - start > budget)) break;
    for (auto& one : all) one.seconds.push_back(time_batch(one, batch, fresh, gradient));
  }
  return batch;
}

void print_rows(const std::vector<contender>& all, std::size_t length, int batch, bool first) {
  for (const auto& one : all) {
    std::printf("%s\n    {\"elements\": %zu, \"name\": \"%s\", \"schedule\": \"%s\", \"batch\": %d, \"seconds\": [",
                first ? "" : ",", length, one.name.c_str(), one.schedule.c_str(), batch);
    for (std::size_t i = 0; i < one.seconds.size(); ++i) std::printf("%s%.9g", i == 0 ? "" : ", ", one.seconds[i]);
    std::printf("]}");
    first = false;
  }
  std::fflush(stdout);
}

/// All ranks work for so many seconds.
void warm_up(double seconds) {
  int goes_on = 1;
  for (const double start = MPI_Wtime(); goes_on;) {
    goes_on = MPI_Wtime() - start < seconds;
    MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {
    const std::size_t largest = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : default_largest;
    const double seconds = argc > 2 ? std::strtod(argv[2], nullptr) : default_seconds;
    const adasum::mpi_communicator comm{MPI_COMM_WORLD};
    const bool root = comm.rank() == 0;
    warm_up(3 * seconds);
    if (root) std::printf("{\"mpi\": \"%s\", \"ranks\": %d, \"rows\": [", mpi_version().c_str(), comm.size());
    for (auto length = smallest; length <= largest; length *= growth) {
      auto all = contenders(comm, length);
      const int batch = run_rounds(all, length, comm.rank(), seconds);
      if (root) print_rows(all, length, batch, length == smallest);
    }
    if (root) std::printf("\n]}\n");
  }
  MPI_Finalize();
}
