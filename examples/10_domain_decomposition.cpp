// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients that are split across ranks. A rod is heated. From temperatures that are measured later, the program estimates the
// temperatures at the beginning, and by how much all instruments read too high. Each replica has its own measurements, and
// works with the gradient of their misfit. Inside a replica, the rod is split over several ranks, which exchange the
// temperatures at their ends. So each rank has one shard of a gradient.
//     mpirun -n 6 10_domain_decomposition 3      # two replicas, each on three ranks
#include <adasum/mpi.hpp>

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int cells_of_rank = 40;

/// Temperatures some time later, of this rank's cells. (The matrix is symmetric: it also carries misfits back in time.)
std::vector<double> later(std::vector<double> now, MPI_Comm rod) {
  int rank = 0, size = 0;
  MPI_Comm_rank(rod, &rank);
  MPI_Comm_size(rod, &size);
  const int left = rank > 0 ? rank - 1 : MPI_PROC_NULL, right = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
  std::vector<double> next(now.size());
  for (int step = 0; step < 20; ++step) {
    double before = 0, after = 0;  // the ends of the rod are kept at 0
    MPI_Sendrecv(&now.back(), 1, MPI_DOUBLE, right, 0, &before, 1, MPI_DOUBLE, left, 0, rod, MPI_STATUS_IGNORE);
    MPI_Sendrecv(&now.front(), 1, MPI_DOUBLE, left, 0, &after, 1, MPI_DOUBLE, right, 0, rod, MPI_STATUS_IGNORE);
    for (std::size_t i = 0; i < now.size(); ++i)
      next[i] =
          now[i] + 0.25 * ((i > 0 ? now[i - 1] : before) - 2 * now[i] + (i + 1 < now.size() ? now[i + 1] : after));
    now.swap(next);
  }
  return now;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int shards = argc > 1 ? std::atoi(argv[1]) : 2;
  if (shards < 1 || size % shards != 0) {
    if (rank == 0) std::fprintf(stderr, "%d ranks are not replicas of %d ranks each\n", size, shards);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const int replica = rank / shards, index = rank % shards;
  MPI_Comm rod;  // the ranks of this replica
  MPI_Comm_split(MPI_COMM_WORLD, replica, index, &rod);

  // What this replica has measured: every third cell, with an error of its own. All instruments read 0.5 too high.
  std::vector<double> truth(cells_of_rank), measured, is_measured(cells_of_rank);
  for (int i = 0; i < cells_of_rank; ++i) {
    const int cell = index * cells_of_rank + i;
    truth[static_cast<std::size_t>(i)] = std::sin(0.05 * cell) + (cell % 40 < 10 ? 1 : 0);
    is_measured[static_cast<std::size_t>(i)] = cell % 3 == replica % 3 ? 1 : 0;
  }
  measured = later(truth, rod);
  for (int i = 0; i < cells_of_rank; ++i)
    measured[static_cast<std::size_t>(i)] += 0.5 + 0.01 * std::sin(17.0 * (replica + 1) * (i + 1));

  // A gradient has two segments: the rod, of which each rank has a shard, and the instruments' error, which all ranks of a
  // replica have. Being replicated, it counts once.
  const adasum::mpi_communicator comm(MPI_COMM_WORLD);
  auto plan = adasum::plan_allreduce<double>(adasum::serial_space{}, comm, {cells_of_rank, 1},
                                             adasum::shard{.replica = replica, .index = index, .replicated = {1}});

  std::vector<double> estimate(cells_of_rank + 1), gradient(cells_of_rank + 1);
  double first_misfit = 0, misfit = 0;
  for (int iteration = 0; iteration < 200; ++iteration) {
    auto residual = later({estimate.begin(), estimate.end() - 1}, rod);
    double sums[2] = {0, 0};  // of residuals, and of their squares
    for (std::size_t i = 0; i < residual.size(); ++i) {
      residual[i] = is_measured[i] * (residual[i] + estimate.back() - measured[i]);
      sums[0] += residual[i];
      sums[1] += residual[i] * residual[i];
    }
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE, MPI_SUM, rod);
    const auto of_rod = later(residual, rod);
    gradient.assign(of_rod.begin(), of_rod.end());
    gradient.push_back(sums[0] / (shards * cells_of_rank));

    plan(gradient);
    for (std::size_t i = 0; i < estimate.size(); ++i) estimate[i] -= gradient[i];
    MPI_Allreduce(&sums[1], &misfit, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (iteration == 0) first_misfit = misfit;
    if (rank == 0 && iteration % 50 == 0) std::printf("iteration %3d: misfit %8.4f\n", iteration, misfit);
  }

  // All ranks have the same estimate of the instruments' error, to the last bit.
  const double mine[2] = {estimate.back(), -estimate.back()};
  double most[2];
  MPI_Allreduce(mine, most, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  const bool good = most[0] == -most[1] && misfit < 0.01 * first_misfit;
  if (rank == 0)
    std::printf("instruments read %.2f too high; misfit %.4f, at first %.4f: %s\n", estimate.back(), misfit,
                first_misfit, good ? "good" : "not good");
  plan = {};
  MPI_Comm_free(&rod);
  MPI_Finalize();
  return good ? 0 : 1;
}
