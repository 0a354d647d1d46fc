// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//     mpirun -n 4 12_routed_communicator
//
// One communicator inside each node and another between nodes. So that it runs anywhere, both are MPI's, and each two ranks are
// a node. On GPUs, the one inside would be an nccl_communicator.
#include <adasum/mpi.hpp>
#include <adasum/testing.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <vector>

#include "routed_communicator.hpp"

namespace {

std::vector<float> gradient_of(int rank) {
  std::vector<float> gradient(1000);
  for (std::size_t x = 0; x < gradient.size(); ++x)
    gradient[x] = 1 + static_cast<float>((x + 7 * static_cast<std::size_t>(rank)) % 5);
  return gradient;
}

/// Whether reducing over both communicators gives what reducing over one gives, up to rounding.
bool is_right(const adasum::mpi_communicator& inside, const adasum::mpi_communicator& all,
              const std::vector<int>& nodes) {
  const adasum::serial_space exec;
  const example::routed_communicator comm{inside, all, nodes};
  adasum::check_communicator(comm, exec);
  // The mean inside each node, Adasum across.
  const adasum::schedules::hierarchical by_node{nodes, adasum::rules::mean{}};
  auto gradient = gradient_of(comm.rank()), expected = gradient;
  adasum::adasum_allreduce(exec, comm, gradient, by_node);
  adasum::adasum_allreduce(exec, all, expected, by_node);
  return std::equal(gradient.begin(), gradient.end(), expected.begin(),
                    [](float x, float y) { return std::abs(x - y) <= 1e-4f; });
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int right = 0;
  {
    const adasum::mpi_communicator all{MPI_COMM_WORLD};
    std::vector<int> nodes;
    for (int r = 0; r < all.size(); ++r) nodes.push_back(r / 2);
    MPI_Comm node = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, all.rank() / 2, all.rank(), &node);
    right = is_right(adasum::mpi_communicator{node}, all, nodes);
    MPI_Comm_free(&node);
    MPI_Allreduce(MPI_IN_PLACE, &right, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (all.rank() == 0)
      std::printf("%d ranks on %d nodes: %s\n", all.size(), (all.size() + 1) / 2, right ? "right" : "wrong");
  }
  MPI_Finalize();
  return right ? 0 : 1;
}
