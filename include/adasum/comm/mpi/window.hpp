// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include "mpi_h.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../../core/error.hpp"
#include "environment.hpp"
#include "error.hpp"
#include "node.hpp"
#include "shared_memory_limit.hpp"

namespace adasum::detail::mpi {

/// Whether `good` holds on all ranks.
inline bool on_all(bool good, MPI_Comm comm) {
  int all_good = good;
  check("MPI_Allreduce", MPI_Allreduce(MPI_IN_PLACE, &all_good, 1, MPI_INT, MPI_MIN, comm));
  return all_good != 0;
}

/// Zeroed memory that the ranks of one node share, the same number of bytes for each. To make it is collective over
/// `whole`, the communicator whose ranks the nodes are made of; to free it, over the ranks of the node.
class window {
 public:
  /// @throws shared_memory_error  on all ranks of `whole`: also where one of them has no memory for this object
  static std::shared_ptr<const window> make(const std::shared_ptr<const node>& ranks_of_node, std::size_t bytes,
                                            MPI_Comm whole) {
    std::shared_ptr<window> made;
    try {
      made = std::make_shared<window>(ranks_of_node);
    } catch (const std::bad_alloc&) {  // the others are about to ask whether all ranks are well
    }
    require_enough_memory(made != nullptr, *ranks_of_node, bytes, whole);
    made->allocate(bytes, whole);
    made->find_addresses();
    check("MPI_Win_lock_all", MPI_Win_lock_all(MPI_MODE_NOCHECK, made->handle_));  // loads and stores from now on
    check("MPI_Win_sync", MPI_Win_sync(made->handle_));
    check("MPI_Barrier", MPI_Barrier(made->comm()));  // all of the memory is zero now
    return made;
  }
  /// For make(). All that it needs besides the memory to be shared.
  explicit window(std::shared_ptr<const node> ranks_of_node) : node_(std::move(ranks_of_node)) {
    addresses_.reserve(ranks().size());
  }
  window(const window&) = delete;
  window& operator=(const window&) = delete;
  ~window() {
    if (finalized() || handle_ == MPI_WIN_NULL) return;
    MPI_Win_unlock_all(handle_);
    MPI_Win_free(&handle_);
  }

  std::span<const int> ranks() const { return node_->ranks(); }
  std::byte* of(std::size_t index) const { return addresses_[index]; }
  MPI_Comm comm() const { return node_->comm().get(); }

 private:
  static constexpr std::size_t line = 64;
  /// Whole cache lines, and one more: MPI promises no alignment.
  static constexpr std::size_t padded(std::size_t bytes) { return (bytes + line - 1) / line * line + line; }

  /// MPI is not asked for more than there is: it might return an error on one rank and let the others wait.
  /// @param made  whether this rank has its window object
  static void require_enough_memory(bool made, const node& here, std::size_t bytes, MPI_Comm whole) {
    // In units of 4 KiB, a page or less, so that no sum overflows; one more for what MPI keeps for each rank. A rank that
    // is alone uses ordinary memory.
    const std::uint64_t mine = here.ranks().size() > 1 ? bytes / 4096 + 2 : 0;
    std::uint64_t wanted = 0;
    check("MPI_Allreduce", MPI_Allreduce(&mine, &wanted, 1, MPI_UINT64_T, MPI_SUM, here.comm().get()));
    const shared_memory_limit limit;
    const bool fits = bytes < PTRDIFF_MAX / 2 && wanted <= limit.usable_bytes() / 4096;
    if (on_all(made && fits, whole)) return;
    if (!made) give_up("this rank has no memory to describe it");
    give_up(fits ? "another node or rank has too little of it"
                 : "the " + std::to_string(here.ranks().size()) + " ranks of this node need " +
                       std::to_string(4 * wanted) + " KiB, and " + limit.directory + " has room for " +
                       std::to_string(limit.usable_bytes() >> 10) + " KiB (its free space, less what MPI needs)");
  }

  void allocate(std::size_t bytes, MPI_Comm whole) {
    void* mine = nullptr;
    const int code =
        MPI_Win_allocate_shared(static_cast<MPI_Aint>(padded(bytes)), 1, MPI_INFO_NULL, comm(), &mine, &handle_);
    if (!on_all(code == MPI_SUCCESS, whole)) {
      // To free a window is collective: where only some ranks of the node have one, it is lost.
      if (on_all(code == MPI_SUCCESS, comm())) MPI_Win_free(&handle_);
      handle_ = MPI_WIN_NULL;
      give_up(code == MPI_SUCCESS ? std::string("another rank could not allocate it")
                                  : mpi_error("MPI_Win_allocate_shared", code).what());
    }
    check("MPI_Win_set_errhandler", MPI_Win_set_errhandler(handle_, MPI_ERRORS_RETURN));
    std::memset(mine, 0, padded(bytes));
  }

  /// The same shift for all ranks, so that an offset means the same place to each of them: the memory is mapped at
  /// different addresses, but always on whole pages.
  void find_addresses() {
    for (int rank = 0; rank < node_->comm().size(); ++rank) {
      MPI_Aint size = 0;
      int unit = 0;
      void* base = nullptr;
      check("MPI_Win_shared_query", MPI_Win_shared_query(handle_, rank, &size, &unit, &base));
      const auto misaligned = reinterpret_cast<std::uintptr_t>(base) % line;
      addresses_.push_back(static_cast<std::byte*>(base) + (line - misaligned) % line);
    }
  }

  [[noreturn]] static void give_up(const std::string& why) {
    throw shared_memory_error("adasum::mpi_communicator: memory cannot be shared: " + why);
  }

  std::shared_ptr<const node> node_;
  MPI_Win handle_ = MPI_WIN_NULL;
  std::vector<std::byte*> addresses_;
};

}  // namespace adasum::detail::mpi
