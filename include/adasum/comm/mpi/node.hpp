// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include "mpi_h.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "error.hpp"
#include "handle.hpp"

namespace adasum::detail::mpi {

/// The ranks that share memory with this one (MPI_COMM_TYPE_SHARED).
class node {
 public:
  /// Memory for what find() finds out, so that it needs none. @param size  of the whole communicator
  explicit node(int size) { ranks_.reserve(static_cast<std::size_t>(size)); }

  /// Collective over `whole` the first time; nothing after that.
  void find(const communicator_handle& whole) {
    if (!ranks_.empty()) return;
    if (!comm_) comm_.emplace(communicator_handle::shared_memory_part(whole));
    ranks_.resize(static_cast<std::size_t>(comm_->size()));
    const int mine = whole.rank();
    const int code = MPI_Allgather(&mine, 1, MPI_INT, ranks_.data(), 1, MPI_INT, comm_->get());
    if (code != MPI_SUCCESS) ranks_.clear();
    check("MPI_Allgather", code);
  }

  // ── once they have been found ──
  const communicator_handle& comm() const { return *comm_; }
  std::span<const int> ranks() const { return ranks_; }  ///< of the whole communicator, ascending

 private:
  std::optional<communicator_handle> comm_;
  std::vector<int> ranks_;
};

}  // namespace adasum::detail::mpi
