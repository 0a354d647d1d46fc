// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//     smpirun -np P -platform fat_tree.xml … adasum_scale_allreduce adasum SPEEDS|- RADIX BYTES…
//     smpirun -np P -platform fat_tree.xml … adasum_scale_allreduce sum SPEEDS|- BYTES…
//     smpirun -np P -platform fat_tree.xml … adasum_scale_allreduce check
//
// One reduction of float vectors of each size on simulated ranks, by the library's own communicator and schedules
// (adasum: one line for each schedule and size) or by MPI_Allreduce with the algorithm that SMPI was told to use (sum):
//
//     RANKS BYTES NAME SECONDS
//
// RADIX is the widest one of halving. SPEEDS names the file of kernel speeds to charge; "-": arithmetic is free.
// check: real gradients, computed for real. bench/scale/run.py runs it.
//
// All simulated ranks are one process and share its globals (smpirun -no-privatize), which this program uses for its
// clock. Long messages carry nothing: only how long they take matters.

#include <mpi.h>
#include <smpi/smpi.h>

#include <adasum/adasum.hpp>
#include <adasum/communicators/mpi.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "../choice_names.hpp"
#include "../noise.hpp"
#include "modelled_space.hpp"

namespace {

constexpr std::size_t largest_bytes = std::size_t{1} << 30;  // a gradient, and those of six ranks beside it
constexpr std::size_t real_payload = std::size_t{1} << 17;   // longer messages are not copied: nobody reads gradients

scale::kernel_speeds speeds;
double meeting_time = 0;  // shared by all ranks
double slowest = 0;

/// One room for the vectors of all ranks: many addresses over one mebibyte of memory, so that what MPI_Allreduce copies
/// inside a rank does not take the simulation's time.
std::span<std::byte> room() {
  static const auto memory = static_cast<std::byte*>(SMPI_SHARED_MALLOC(largest_bytes));
  return {memory, largest_bytes};
}

/// Seconds from a common start until the last rank has done its work.
template <class Work>
double simulate(int rank, Work&& work) {
  if (rank == 0) {
    meeting_time = MPI_Wtime() + 1;
    slowest = 0;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  scale::charge(meeting_time - MPI_Wtime());
  const double start = MPI_Wtime();
  work();
  slowest = std::max(slowest, MPI_Wtime() - start);
  MPI_Barrier(MPI_COMM_WORLD);
  return slowest;
}

void print(int ranks, std::size_t bytes, const std::string& name, double seconds) {
  std::printf("%d %zu %s %.9g\n", ranks, bytes, name.c_str(), seconds);
  std::fflush(stdout);
}

// ── the baseline ──

/// A sum of two vectors, by the kernel that mixes two.
void add(void*, void*, int* count, MPI_Datatype*) {
  scale::charge(speeds.elements("mix", 2, static_cast<std::size_t>(*count)));
}

void time_sum(std::size_t bytes, int rank, int ranks) {
  MPI_Op op;
  MPI_Op_create(&add, 1, &op);
  const auto half = room().size() / 2;
  const double seconds = simulate(rank, [&] {
    MPI_Allreduce(room().data(), room().data() + half, static_cast<int>(bytes / sizeof(float)), MPI_FLOAT, op,
                  MPI_COMM_WORLD);
  });
  MPI_Op_free(&op);
  if (rank == 0) print(ranks, bytes, "sum", seconds);
}

// ── ours ──

constexpr adasum::options unchecked{.check_agreement = false};

template <class Schedule>
void time_schedule(const std::string& name, const adasum::mpi_communicator& comm, std::size_t bytes,
                   const Schedule& order) {
  const scale::modelled_space space(speeds, room());
  const auto length = bytes / sizeof(float);
  auto plan = adasum::plan_allreduce<float>(space, comm, adasum::segments::whole(length), order, unchecked);
  const std::span gradient(reinterpret_cast<float*>(room().data()), length);
  const double seconds = simulate(comm.rank(), [&] { plan(gradient); });
  if (comm.rank() == 0) print(comm.size(), bytes, name, seconds);
}

constexpr int ranks_per_node = 8;  // of hierarchical

/// visit(name, schedule) for each schedule that is worth its simulation at so many ranks. Among many ranks, radix 2 is
/// simulated to the end only: with a limit to the parts, radix 4 takes fewer exchanges.
template <class Visitor>
void for_each_schedule(int ranks, std::size_t widest, Visitor&& visit) {
  using namespace adasum::schedules;
  for (const auto& one : adasum::detail::ways_of_doubling(ranks))
    if (one.radix <= widest) visit(name_of(one), recursive_doubling{one.radix});
  for (const auto& one : adasum::detail::ways_of_halving(ranks)) {
    const bool to_the_end = one.most_parts == adasum::detail::any_number_of_parts;
    if (one.radix <= widest && (to_the_end || one.radix > 2 || ranks <= 64))
      visit(name_of(one), recursive_halving{one.radix, one.most_parts});
  }
  // The Gram matrix of 1,024 ranks is as long as a gradient of 4 MB.
  if (ranks <= 128) visit("all_to_all", all_to_all{});
  if (ranks > ranks_per_node) {
    std::vector<int> node_of_rank;
    for (int rank = 0; rank < ranks; ++rank) node_of_rank.push_back(rank / ranks_per_node);
    visit("hierarchical", hierarchical{node_of_rank, adasum::rules::mean{}});
  }
}

// ── the check ──

/// Every schedule over messages gives what one process gives for the same gradients.
bool check(const adasum::mpi_communicator& comm) {
  constexpr std::size_t length = 3000;
  const adasum::serial_space exec;
  const adasum::segments segments{1000, 0, 1999, 1};
  std::vector<std::vector<float>> gradients(static_cast<std::size_t>(comm.size()), std::vector<float>(length));
  for (std::size_t i = 0; i < gradients.size(); ++i) fill_with_noise(std::span(gradients[i]), static_cast<unsigned>(i));
  std::vector<float> expected(length);
  adasum::adasum_tree(exec, gradients, expected, segments);
  constexpr std::size_t widest = 32;
  bool good = true;
  for_each_schedule(comm.size(), widest, [&](const std::string& name, const auto& order) {
    if (name == "hierarchical") return;  // another combination: the mean inside nodes
    auto gradient = gradients[static_cast<std::size_t>(comm.rank())];
    adasum::adasum_allreduce(exec, comm, gradient, segments, order, adasum::options{.check_agreement = true});
    for (std::size_t x = 0; x < length; ++x)
      if (!(std::abs(gradient[x] - expected[x]) <= 1e-5f * static_cast<float>(comm.size()))) {
        std::printf("rank %d, %s: element %zu is %g, not %g\n", comm.rank(), name.c_str(), x, gradient[x], expected[x]);
        good = false;
        return;
      }
  });
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  bool good = true;
  {
    const adasum::mpi_communicator comm{MPI_COMM_WORLD};
    const std::string mode = argc > 1 ? argv[1] : "check";
    if (mode == "check") {
      good = check(comm);
    } else {
      smpi_comm_set_copy_data_callback([](smx_activity_t activity, void* buffer, std::size_t bytes) {
        if (bytes <= real_payload)
          smpi_comm_copy_buffer_callback(reinterpret_cast<simgrid::kernel::activity::CommImpl*>(activity), buffer,
                                         bytes);
      });
      if (comm.rank() == 0 && std::strcmp(argv[2], "-") != 0) speeds = scale::kernel_speeds(argv[2]);
      MPI_Barrier(MPI_COMM_WORLD);
      const auto number = [&](int i) { return static_cast<std::size_t>(std::strtoull(argv[i], nullptr, 10)); };
      const auto widest = mode == "sum" ? 0 : number(3);
      for (int i = mode == "sum" ? 3 : 4; i < argc; ++i) {
        const auto bytes = number(i);
        if (mode == "sum")
          time_sum(bytes, comm.rank(), comm.size());
        else
          for_each_schedule(comm.size(), widest, [&](const std::string& name, const auto& order) {
            time_schedule(name, comm, bytes, order);
          });
      }
    }
  }
  MPI_Finalize();
  return good ? 0 : 1;
}
