// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include <adasum/communicators/mpi.hpp>

/// What the MPI tests share. Checks never leave a test case early on one rank alone: the others would wait.
namespace adasum::test {

inline int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

inline int world_size() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

/// Whether all ranks hold the same bytes.
template <class Container>
bool same_on_all_ranks(const Container& mine, MPI_Comm comm = MPI_COMM_WORLD) {
  unsigned long count = mine.size();
  MPI_Bcast(&count, 1, MPI_UNSIGNED_LONG, 0, comm);
  auto of_first = mine;
  of_first.resize(count);
  MPI_Bcast(of_first.data(), static_cast<int>(count * sizeof(mine[0])), MPI_BYTE, 0, comm);
  const bool same_here = mine.size() == of_first.size() &&
                         (count == 0 || std::memcmp(mine.data(), of_first.data(), count * sizeof(mine[0])) == 0);
  const int mine_same = same_here;
  int all_same = 0;
  MPI_Allreduce(&mine_same, &all_same, 1, MPI_INT, MPI_MIN, comm);
  return all_same != 0;
}

}  // namespace adasum::test
