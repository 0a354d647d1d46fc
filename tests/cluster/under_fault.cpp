// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//     under_fault SECONDS FLOATS messages|hierarchical [TIMEOUT FILE]
//
// Reduces the same gradients again and again for so long, so that something can be done to the nodes meanwhile
// (faults.sh). Rank 0 prints "reducing" when the first reduction is over, and at the end how many there were and how long
// the longest took. Fails where a reduction gives another result than the first, or where ranks differ.
//
// Where ADASUM_TEST_KILLED is "before" or "after", the last rank ends itself by SIGKILL before its first reduction or after its
// last.
//
// With TIMEOUT, in seconds, goes on until a rank waits that long for another. Each rank then writes what it was told into
// FILE.<rank>, since nobody may be there any more to take its output, and stays until it is ended: it would take others with
// it.

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <adasum/adasum.hpp>
#include <adasum/communicators/mpi.hpp>

#include "support/bits.hpp"
#include "support/mpi_end.hpp"
#include "support/mpi_world.hpp"
#include "support/random_gradients.hpp"

using namespace adasum::test;

namespace {

/// Rank 0's answer on all ranks.
bool agreed(bool answer) {
  int value = answer;
  MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return value != 0;
}

void end_here(const std::string& when) {
  const char* const wanted = std::getenv("ADASUM_TEST_KILLED");
  if (wanted == nullptr || when != wanted || world_rank() + 1 != world_size()) return;
  std::printf("rank %d is killed\n", world_rank());
  std::fflush(stdout);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // until its output has been passed on
  std::raise(SIGKILL);
}

template <class Schedule>
int reduce_for(double seconds, std::size_t length, const adasum::mpi_communicator& comm, const Schedule& order) {
  const auto fresh = random_gradients<float>(static_cast<std::size_t>(comm.size()), length, 1);
  auto plan = adasum::plan_allreduce<float>(adasum::serial_space{}, comm, length, order, {.check_agreement = false});
  const auto buffer = plan.buffer();
  const auto reduce = [&] {
    std::ranges::copy(fresh[static_cast<std::size_t>(comm.rank())], buffer.begin());
    plan();
    return std::vector<float>(buffer.begin(), buffer.end());
  };

  end_here("before");
  const auto first = reduce();
  bool good = same_on_all_ranks(first);
  if (comm.rank() == 0) std::puts("reducing"), std::fflush(stdout);
  const double start = MPI_Wtime();
  double longest = 0;
  int reductions = 0;
  // Without a timeout of its own, nothing of MPI's may be called where ranks may be out of reach.
  while (adasum::detail::is_limited(comm.timeout()) || agreed(MPI_Wtime() - start < seconds)) {
    const double before = MPI_Wtime();
    good = same_bits(reduce(), first) && good;
    longest = std::max(longest, MPI_Wtime() - before);
    ++reductions;
  }
  end_here("after");
  if (comm.rank() == 0) std::printf("%d reductions, the longest took %.1f s\n", reductions, longest);
  return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int status = EXIT_FAILURE;
  if (argc == 4 || argc == 6) {
    const adasum::mpi_communicator comm{MPI_COMM_WORLD};
    if (argc == 6) comm.set_timeout(std::chrono::duration<double>(std::strtod(argv[4], nullptr)));
    const double seconds = std::strtod(argv[1], nullptr);
    const std::size_t length = std::strtoull(argv[2], nullptr, 10);
    try {
      if (std::string(argv[3]) == "hierarchical")
        status =
            reduce_for(seconds, length, comm, adasum::schedules::hierarchical{comm.nodes(), adasum::rules::adasum{}});
      else
        status = reduce_for(seconds, length, comm, adasum::schedules::automatic{.in_place = false});
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rank %d: %s\n", world_rank(), error.what());
      if (argc == 6) {
        std::ofstream(argv[5] + ("." + std::to_string(world_rank()))) << error.what() << std::endl;
        for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
      }
      MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
  }
  end_mpi(status);
}
