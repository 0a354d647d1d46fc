// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include "mpi_h.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "../../core/error.hpp"
#include "error.hpp"
#include "handle.hpp"

namespace adasum::detail::mpi {

/// The ranks that share memory with this one (MPI_COMM_TYPE_SHARED), and the nodes of the others.
class node {
 public:
  /// Memory for what find() finds out, so that it needs none. @param size  of the whole communicator
  explicit node(int size) : node_of_rank_(static_cast<std::size_t>(size)) { ranks_.reserve(node_of_rank_.size()); }

  /// Once. Collective over `whole`.
  void find(const communicator_handle& whole) {
    int lowest = whole.rank();
    try {
      comm_.emplace(communicator_handle::shared_memory_part(whole));
      check("MPI_Bcast", MPI_Bcast(&lowest, 1, MPI_INT, 0, comm_->get()));
      check("MPI_Allgather", MPI_Allgather(&lowest, 1, MPI_INT, node_of_rank_.data(), 1, MPI_INT, whole.get()));
    } catch (const communication_error&) {  // a rank has died: others may wait for this one
      if (comm_) comm_->revoke();
      whole.revoke();
      throw;
    }
    for (int rank = 0; rank < whole.size(); ++rank)
      if (node_of_rank_[static_cast<std::size_t>(rank)] == lowest) ranks_.push_back(rank);
  }

  // ── once they have been found ──
  const communicator_handle& comm() const { return *comm_; }
  std::span<const int> ranks() const { return ranks_; }  ///< of the whole communicator, ascending
  /// The node of each rank, named by the lowest of the ranks that share memory there.
  const std::vector<int>& node_of_rank() const { return node_of_rank_; }

 private:
  std::optional<communicator_handle> comm_;
  std::vector<int> ranks_;
  std::vector<int> node_of_rank_;
};

}  // namespace adasum::detail::mpi
