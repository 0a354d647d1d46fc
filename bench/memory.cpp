// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//     mpirun -n P adasum_bench_memory REDUCER [number of floats]
//
// What one reducer needs: MPI_Allreduce(MPI_IN_PLACE, MPI_SUM) or a schedule's name. A process for each, since the most
// memory that a process has ever had is never less again. Rank 0 prints a line of JSON: the plan's scratch (elements
// that its execution space was asked for) and resident memory of each rank, before it has a gradient and at its peak.
// Pages that ranks share count for each of those that touch them.

#include <mpi.h>
#include <sys/resource.h>

#include <adasum/adasum.hpp>
#include <adasum/communicators/mpi.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mpi_version.hpp"
#include "noise.hpp"

namespace {

constexpr std::size_t default_length = std::size_t{1} << 22;
constexpr int runs = 3;

/// Counts the bytes that are asked for.
struct counting_space : adasum::serial_space {
  std::size_t* bytes;
  friend bool operator==(const counting_space&, const counting_space&) = default;

  template <adasum::scalar T>
  auto allocate(std::size_t count) const {
    *bytes += count * sizeof(T);
    return serial_space::allocate<T>(count);
  }
};

/// In bytes.
std::size_t peak_resident_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::size_t>(usage.ru_maxrss) * 1024;
}

void sum(std::span<float> gradient) {
  MPI_Allreduce(MPI_IN_PLACE, gradient.data(), static_cast<int>(gradient.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

/// Reduces a gradient by `reducer`. @return bytes of scratch
std::size_t reduce(std::string_view reducer, const adasum::mpi_communicator& comm, std::size_t length) {
  std::size_t scratch = 0;
  const auto seed = static_cast<std::uint32_t>(comm.rank());
  if (reducer == "MPI_Allreduce") {
    std::vector<float> gradient(length);
    fill_with_noise(std::span(gradient), seed);
    for (int run = 0; run < runs; ++run) sum(gradient);
    return scratch;
  }
  const auto by = [&](const auto& schedule, bool in_its_buffer = false) {
    auto plan =
        adasum::plan_allreduce<float>(counting_space{{}, &scratch}, comm, adasum::segments::whole(length),
                                      adasum::rules::adasum{}, schedule, adasum::options{.check_agreement = false});
    std::vector<float> own(in_its_buffer ? 0 : length);
    const auto gradient = in_its_buffer ? plan.buffer() : std::span(own);
    fill_with_noise(gradient, seed);
    for (int run = 0; run < runs; ++run) plan(gradient);
    return scratch;
  };
  namespace schedules = adasum::schedules;
  if (reducer == "recursive_doubling") return by(schedules::recursive_doubling{});
  if (reducer == "recursive_halving") return by(schedules::recursive_halving{});
  if (reducer == "all_to_all") return by(schedules::all_to_all{});
  if (reducer == "recursive_halving{4}") return by(schedules::recursive_halving{.radix = 4});
  if (reducer == "shared_memory") return by(schedules::shared_memory{}, true);
  std::fprintf(stderr, "adasum_bench_memory: there is no reducer %s\n", std::string(reducer).c_str());
  std::exit(2);
}

/// One value of each rank, on rank 0.
std::vector<std::size_t> gathered(const adasum::mpi_communicator& comm, std::size_t mine) {
  std::vector<std::size_t> all(static_cast<std::size_t>(comm.size()));
  MPI_Gather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, 0, MPI_COMM_WORLD);
  return all;
}

void print(const char* name, const std::vector<std::size_t>& values) {
  std::printf(", \"%s\": [", name);
  for (std::size_t i = 0; i < values.size(); ++i) std::printf("%s%zu", i == 0 ? "" : ", ", values[i]);
  std::printf("]");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "usage: adasum_bench_memory REDUCER [number of floats]\n"), 2;
  MPI_Init(&argc, &argv);
  {
    const std::size_t length = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : default_length;
    const adasum::mpi_communicator comm{MPI_COMM_WORLD};
    std::vector<float> few(256);
    sum(few);  // what MPI sets up at the first call
    const auto before = gathered(comm, peak_resident_memory());
    const auto scratch = gathered(comm, reduce(argv[1], comm, length));
    const auto peak = gathered(comm, peak_resident_memory());
    if (comm.rank() == 0) {
      std::printf("{\"mpi\": \"%s\", \"ranks\": %d, \"elements\": %zu, \"name\": \"%s\"", mpi_version().c_str(),
                  comm.size(), length, argv[1]);
      print("scratch", scratch);
      print("before", before);
      print("peak", peak);
      std::printf("}\n");
    }
  }
  MPI_Finalize();
}
