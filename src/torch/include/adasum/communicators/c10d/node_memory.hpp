// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <adasum/core/config.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include <adasum/communicators/shared_file.hpp>
#include <adasum/core/error.hpp>
#include "messages.hpp"
#include "notes.hpp"

namespace adasum::detail::c10d {

/// Zeroed memory that the processes of one node share. To make it is collective; each process unmaps it by itself, when it
/// likes, and what the others have mapped stays.
class node_memory {
 public:
  /// What a rank tells the others about its part.
  struct note {
    std::uint64_t pages = 0;
    int problem = 0;           // an errno
    shared_file::name name{};  // of the first rank of a node
  };

  /// Collective over all ranks. @param nodes  of each rank: the lowest rank of its node @param bytes  of this rank
  /// @throws shared_memory_error  on all ranks: there is no room; or ranks of one node do not find each other's files, as in
  ///                              containers that have memory of their own
  /// @throws c10d_error  the group failed
  static std::shared_ptr<const node_memory> make(std::span<const int> nodes, int rank, std::size_t bytes,
                                                 messages& exchanges, notes<note>& told) {
    std::shared_ptr<node_memory> made;
    told.own() = {};
    try {
      made = std::make_shared<node_memory>(nodes, rank);
      told.own().pages = bytes / page + 1;
    } catch (const std::bad_alloc&) {
      told.own().problem = ENOMEM;
    }
    const auto& notes = told.tell(exchanges);
    require_none_failed(notes);
    struct unnaming {  // when all have opened it, or the group has failed
      const shared_file::name* made = nullptr;
      ~unnaming() {
        if (made) shared_file::remove(*made);
      }
    } at_the_end;
    made->lay_out(notes);
    auto& own = told.own();
    const bool is_shared = made->ranks_.size() > 1, is_first = made->ranks_.front() == rank;
    if (is_shared && is_first) {
      own.problem = made->file_.create(own.name, made->bytes());
      if (own.problem == 0) at_the_end.made = &own.name;
    }
    require_none_failed(told.tell(exchanges));
    if (is_shared && !is_first) own.problem = made->file_.open(notes[static_cast<std::size_t>(made->ranks_[0])].name);
    if (own.problem == 0) own.problem = made->map();
    require_none_failed(told.tell(exchanges));
    return made;
  }
  /// For make().
  node_memory(std::span<const int> nodes, int rank) {
    for (std::size_t peer = 0; peer < nodes.size(); ++peer) {
      if (nodes[peer] != nodes[static_cast<std::size_t>(rank)]) continue;
      if (static_cast<int>(peer) == rank) self_ = ranks_.size();
      ranks_.push_back(static_cast<int>(peer));
    }
    ends_.resize(ranks_.size());
  }

  std::span<const int> ranks() const { return ranks_; }
  std::byte* of(std::size_t index) const { return file_.base() + begin_of(index) * page; }
  /// Whether that process has ended, or has dropped this memory.
  bool has_left(std::size_t index) const { return index != self_ && !file_.is_held(index); }

 private:
  static constexpr std::size_t page = 4096;  // or a part of one; no rank's memory ends within a cache line

  std::size_t begin_of(std::size_t index) const { return index == 0 ? 0 : ends_[index - 1]; }
  std::size_t bytes() const { return ends_.back() * page; }

  void lay_out(std::span<const note> notes) {
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < ranks_.size(); ++i) ends_[i] = end += notes[static_cast<std::size_t>(ranks_[i])].pages;
  }
  /// @return an errno, or 0
  int map() {
    if (ranks_.size() == 1) return file_.map(bytes());
    const auto begin = begin_of(self_);
    if (const int problem = file_.take(begin * page, (ends_[self_] - begin) * page)) return problem;
    if (const int problem = file_.map(bytes(), true)) return problem;
    return file_.hold(self_);
  }

  static void require_none_failed(std::span<const note> notes) {
    const auto failed = std::ranges::find_if(notes, [](const note& one) { return one.problem != 0; });
    if (failed == notes.end()) return;
    throw shared_memory_error({"adasum::c10d_communicator: memory cannot be shared: rank ", failed - notes.begin(),
                               ", in ", shared_file::directory(), ": ",
                               std::generic_category().message(failed->problem)});
  }

  std::vector<int> ranks_;
  std::size_t self_ = 0;
  std::vector<std::uint64_t> ends_;  // of each rank's memory, in pages
  shared_file file_;
};

}  // namespace adasum::detail::c10d
