// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What adasum::compiled_mpi holds: a plan and a single call, of float and double, against adasum_tree of the same
// gradients on every rank.
#include <adasum/mpi.hpp>

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <vector>

#ifndef ADASUM_COMPILED_MPI
#error "this program is to link adasum::compiled_mpi"
#endif

template <class T>
bool agrees(const adasum::mpi_communicator& comm) {
  const adasum::serial_space exec;
  std::vector<std::vector<T>> gradients;
  for (int rank = 0; rank < comm.size(); ++rank) {
    std::vector<T> one(500);
    for (std::size_t x = 0; x < one.size(); ++x) one[x] = static_cast<T>(std::sin(0.1 * static_cast<double>(x) + rank));
    gradients.push_back(one);
  }
  std::vector<T> expected(500);
  adasum::adasum_tree(exec, gradients, expected);
  auto once = gradients[static_cast<std::size_t>(comm.rank())], planned = once;
  adasum::adasum_allreduce(exec, comm, once);
  auto plan = adasum::plan_allreduce<T>(exec, comm, planned.size());
  plan(planned);
  bool good = true;
  for (std::size_t x = 0; x < expected.size(); ++x)
    good = good && std::abs(once[x] - expected[x]) < T(1e-5) && std::abs(planned[x] - expected[x]) < T(1e-5);
  return good;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  bool good = false;
  {
    const adasum::mpi_communicator comm{MPI_COMM_WORLD};
    good = agrees<float>(comm) && agrees<double>(comm);
  }
  MPI_Finalize();
  std::puts(good ? "good" : "bad");
  return good ? 0 : 1;
}
