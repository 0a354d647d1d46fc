// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include "mpi_h.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "../../core/error.hpp"
#include "../shared_file.hpp"
#include "error.hpp"
#include "handle.hpp"
#include "waiting.hpp"

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

/// Whether `good` holds on all ranks.
inline bool on_all(bool good, MPI_Comm comm, waiting& wait) {
  if (wait.size() == 1) return good;
  int& all_good = wait.number = good;
  MPI_Request request;
  check("MPI_Iallreduce", MPI_Iallreduce(MPI_IN_PLACE, &all_good, 1, MPI_INT, MPI_MIN, comm, &request));
  wait.await("MPI_Iallreduce", request);
  return all_good != 0;
}

/// Zeroed memory that the ranks of one node share. To make it is collective. It is no MPI window (MPI_Win_allocate_shared),
/// because freeing one is collective, too: a rank that drops its plans after an exception would wait for others that
/// wait for it. This memory each rank unmaps by itself, when it likes, also after MPI_Finalize; what the others have
/// mapped stays.
class node_memory {
 public:
  /// Collective over `whole`, the communicator whose ranks the nodes are made of. @param bytes  of this rank
  /// @throws shared_memory_error  on all ranks of `whole`: also where one of them has no memory for this object
  /// @throws timeout_error        this rank has given up waiting for another
  static std::shared_ptr<const node_memory> make(const std::shared_ptr<const node>& ranks_of_node, std::size_t bytes,
                                                 MPI_Comm whole, waiting& wait) {
    std::shared_ptr<node_memory> made;
    try {
      made = std::make_shared<node_memory>(ranks_of_node);
    } catch (const std::bad_alloc&) {  // the others are about to ask whether all ranks are well
    }
    if (!on_all(made != nullptr, whole, wait)) give_up(made ? another_rank : "this rank has no memory to describe it");
    try {
      made->lay_out(bytes, wait);
      made->open(whole, wait);
      made->map(whole, wait);
    } catch (const timeout_error&) {  // MPI may still work on its members: they stay for good
      new (std::nothrow) std::shared_ptr<node_memory>(made);
      throw;
    }
    return made;
  }
  /// For make(). All that it needs besides the memory to be shared.
  explicit node_memory(std::shared_ptr<const node> ranks_of_node)
      : node_(std::move(ranks_of_node)), ends_(ranks().size()) {}

  std::span<const int> ranks() const { return node_->ranks(); }
  std::byte* of(std::size_t index) const { return file_.base() + begin_of(index) * page; }
  MPI_Comm comm() const { return node_->comm().get(); }

 private:
  static constexpr std::size_t page = 4096;  // or a part of one; no rank's memory ends within a cache line
  static constexpr const char* another_rank = "another rank could not make it";

  std::size_t self() const { return static_cast<std::size_t>(node_->comm().rank()); }
  std::size_t begin_of(std::size_t index) const { return index == 0 ? 0 : ends_[index - 1]; }
  std::size_t pages() const { return ends_.back(); }

  /// Where each rank's memory begins and ends, in pages.
  void lay_out(std::size_t bytes, waiting& wait) {
    own_pages_ = bytes / page + 1;
    ends_[self()] = own_pages_;
    if (ranks().size() > 1) {
      MPI_Request request;
      check("MPI_Iallgather",
            MPI_Iallgather(&own_pages_, 1, MPI_UINT64_T, ends_.data(), 1, MPI_UINT64_T, comm(), &request));
      wait.await("MPI_Iallgather", request);
    }
    std::partial_sum(ends_.begin(), ends_.end(), ends_.begin());  // of less than 2⁵² pages each
  }

  /// The first rank of the node makes the file; the others open it. One that is alone needs none.
  void open(MPI_Comm whole, waiting& wait) {
    auto& made = first_ranks_;
    made.problem = pages() < PTRDIFF_MAX / page ? 0 : EFBIG;
    struct unnaming {  // when all have opened it, or MPI has failed
      const shared_file::name* made = nullptr;
      ~unnaming() {
        if (made) shared_file::remove(*made);
      }
    } at_the_end;
    if (ranks().size() > 1) {
      if (self() == 0 && made.problem == 0) made.problem = file_.create(made.name, pages() * page);
      if (self() == 0 && made.problem == 0) at_the_end.made = &made.name;
      MPI_Request request;
      check("MPI_Ibcast", MPI_Ibcast(&made, sizeof made, MPI_BYTE, 0, comm(), &request));
      wait.await("MPI_Ibcast", request);
      if (self() != 0 && made.problem == 0) made.problem = file_.open(made.name);
    }
    if (!on_all(made.problem == 0, whole, wait)) give_up(made.problem);
  }

  void map(MPI_Comm whole, waiting& wait) {
    int problem =
        ranks().size() == 1 ? 0 : file_.take(begin_of(self()) * page, (ends_[self()] - begin_of(self())) * page);
    if (problem == 0) problem = file_.map(pages() * page);
    if (!on_all(problem == 0, whole, wait)) give_up(problem);
  }

  /// @param problem  an errno; 0 on a rank that has none
  [[noreturn]] void give_up(int problem) const {
    if (problem == 0) give_up(another_rank);
    give_up(joined({"the ", ranks().size(), " ranks of this node need ", 4 * pages(), " KiB in ",
                    shared_file::directory(), ": ", std::generic_category().message(problem)}));
  }
  [[noreturn]] static void give_up(const std::string& why) {
    throw shared_memory_error({"adasum::mpi_communicator: memory cannot be shared: ", why});
  }

  std::shared_ptr<const node> node_;
  std::uint64_t own_pages_ = 0;
  std::vector<std::uint64_t> ends_;  // of each rank's memory, in pages
  struct {
    int problem = 0;
    shared_file::name name{};
  } first_ranks_;  // what the first rank tells the others
  shared_file file_;
};

}  // namespace adasum::detail::mpi
