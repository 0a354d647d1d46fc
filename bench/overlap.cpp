// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//     mpirun -n P adasum_bench_overlap [number of floats] [seconds for each setting]
//
// How much of the communication a backward pass hides. Layers of equal size are computed from the last to the first,
// and their gradients are reduced in buckets beside that (adasum::bucketed). A round takes three times, each after a
// barrier and the maximum over the ranks: the computation alone, the communication alone (all gradients are there), and
// both together;
//
//     hidden = (computation + communication − together) / communication.
//
// Two computations. `processor`: this rank's own core multiplies and adds in its cache, and writes each gradient; it
// looks after the communication a few times per layer. `elsewhere`: the computation takes nothing from this core, as on
// an accelerator; here the clock alone says when a layer is due, and the rank looks after the communication until then.
// Both last about 1.5 times as long as the communication does alone. No more than 1 - 1/16 can be hidden: the last
// bucket is complete when the computation ends.
// `inside` is how long the rank was in the library before wait(): for `processor`, the work that the communication is
// for its own core, and that no computation on this core can hide.

#include <mpi.h>

#include <adasum/adasum.hpp>
#include <adasum/communicators/mpi.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "agreed.hpp"
#include "mpi_version.hpp"
#include "noise.hpp"

namespace {

constexpr std::size_t default_length = std::size_t{1} << 23, layers = 64, bucket_count = 16;
constexpr double default_seconds = 10, computation_over_communication = 1.5;
constexpr int pieces_of_layer = 8;  // between them, processor looks after the communication
constexpr int fewest_rounds = 5, most_rounds = 301;

constexpr adasum::options unchecked{.check_agreement = false};

/// The processor's work: `rounds` multiply-adds on each of a few vectors that stay in its registers.
void multiply_and_add(std::size_t rounds) {
  static volatile float sink;
  std::array<float, 256> x{};
  x.fill(static_cast<float>(sink));
  for (std::size_t i = 0; i < rounds; ++i)
    for (float& element : x) element = element * 0.999f + 0.5f;
  sink = x[7];
}

struct times {
  double whole = 0, inside = 0;
};

/// The slowest rank's.
times slowest(times mine) {
  MPI_Allreduce(MPI_IN_PLACE, &mine, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return mine;
}

template <class Buckets>
class backward_pass {
 public:
  backward_pass(Buckets& reducer, bool on_processor, std::span<const float> fresh, double communication)
      : buckets_(reducer),
        on_processor_(on_processor),
        fresh_(fresh),
        layer_seconds_(computation_over_communication * communication / layers) {
    if (!on_processor_) return;
    constexpr std::size_t trial = std::size_t{1} << 14;
    const double writing = alone() / layers;
    double trial_seconds = 1;
    for (int i = 0; i < 5; ++i) {
      const double start = MPI_Wtime();
      multiply_and_add(trial);
      trial_seconds = std::min(trial_seconds, MPI_Wtime() - start);
    }
    const double piece = std::max(0.0, layer_seconds_ - writing) / pieces_of_layer;
    rounds_ = agreed(static_cast<std::size_t>(piece / trial_seconds * trial));
  }

  /// The computation alone.
  double alone() { return run(false).whole; }
  /// With the communication beside it.
  times together() { return run(true); }

 private:
  times run(bool communicate) {
    times found;
    const auto inside = [&](auto&& call) {
      if (!communicate) return;
      const double start = MPI_Wtime();
      call();
      found.inside += MPI_Wtime() - start;
    };
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (std::size_t layer = layers; layer-- > 0;) {
      if (on_processor_) {
        for (int piece = 0; piece < pieces_of_layer; ++piece) {
          multiply_and_add(rounds_);
          inside([&] { buckets_.test(); });
        }
        const auto gradient = buckets_.gradient(layer);
        std::ranges::copy(fresh_.first(gradient.size()), gradient.begin());
      } else {
        const double due = start + static_cast<double>(layers - layer) * layer_seconds_;
        while (MPI_Wtime() < due) inside([&] { buckets_.test(); });
      }
      inside([&] { buckets_.ready(layer); });
    }
    if (communicate) buckets_.wait();
    found.whole = MPI_Wtime() - start;
    return slowest(found);
  }

  Buckets& buckets_;
  bool on_processor_;
  std::span<const float> fresh_;
  double layer_seconds_;
  std::size_t rounds_ = 0;
};

/// All gradients are there.
template <class Buckets>
double communicate_alone(Buckets& buckets) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (std::size_t layer = layers; layer-- > 0;) buckets.ready(layer);
  buckets.wait();
  return slowest({MPI_Wtime() - start, 0}).whole;
}

void print_list(const char* name, const std::vector<double>& values) {
  std::printf(", \"%s\": [", name);
  for (std::size_t i = 0; i < values.size(); ++i) std::printf("%s%.9g", i == 0 ? "" : ", ", values[i]);
  std::printf("]");
}

template <class Schedule>
void measure(const adasum::mpi_communicator& comm, const Schedule& order, std::size_t length, double budget,
             bool& first) {
  const std::vector<std::size_t> lengths(layers, length / layers);
  auto reducer =
      adasum::plan_bucketed<float>(adasum::serial_space{}, comm, lengths, length / bucket_count * sizeof(float),
                                   adasum::rules::adasum{}, order, unchecked);
  std::vector<float> fresh(length / layers);
  fill_with_noise(std::span(fresh), static_cast<std::uint32_t>(comm.rank()));
  for (std::size_t layer = 0; layer < layers; ++layer) std::ranges::copy(fresh, reducer.gradient(layer).begin());
  std::vector<double> warm;
  for (int i = 0; i < 7; ++i) warm.push_back(communicate_alone(reducer));
  std::ranges::sort(warm);
  const double typical = agreed(warm[warm.size() / 2]);

  for (const bool on_processor : {true, false}) {
    backward_pass pass(reducer, on_processor, fresh, typical);
    std::vector<double> computation, communication, together, inside;
    const double start = MPI_Wtime();
    for (int round = 0; round < most_rounds; ++round) {
      if (agreed(round >= fewest_rounds && MPI_Wtime() - start > budget)) break;
      computation.push_back(pass.alone());
      communication.push_back(communicate_alone(reducer));
      const auto both = pass.together();
      together.push_back(both.whole);
      inside.push_back(both.inside);
    }
    if (comm.rank() != 0) continue;
    std::printf(
        "%s\n    {\"elements\": %zu, \"layers\": %zu, \"buckets\": %zu, \"schedule\": \"%s\", \"computation\": \"%s\"",
        first ? "" : ",", length, layers, reducer.buckets(), std::string(Schedule::name).c_str(),
        on_processor ? "processor" : "elsewhere");
    print_list("computing", computation);
    print_list("communicating", communication);
    print_list("together", together);
    print_list("inside", inside);
    std::printf("}");
    std::fflush(stdout);
    first = false;
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {
    const std::size_t length = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : default_length;
    const double seconds = argc > 2 ? std::strtod(argv[2], nullptr) : default_seconds;
    const adasum::mpi_communicator comm{MPI_COMM_WORLD};
    if (comm.rank() == 0)
      std::printf("{\"mpi\": \"%s\", \"ranks\": %d, \"rows\": [", mpi_version().c_str(), comm.size());
    bool first = true;
    measure(comm, adasum::schedules::shared_memory{}, length, seconds, first);
    measure(comm, adasum::schedules::recursive_halving{}, length, seconds, first);
    if (comm.rank() == 0) std::printf("\n]}\n");
  }
  MPI_Finalize();
}
