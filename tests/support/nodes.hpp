// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include <adasum/communicators/threads.hpp>
#include <adasum/exec/serial.hpp>

namespace adasum::test {

/// Threads that pose as the ranks of several nodes: only those of one node share memory, and only what share() gave.
class node_communicator {
 public:
  class memory {
   public:
    static constexpr bool same_address_space = false;
    std::span<const int> ranks() const { return ranks_; }
    std::byte* of(std::size_t place) const { return blocks_[place]; }

   private:
    friend node_communicator;
    std::vector<int> ranks_;
    std::vector<std::byte*> blocks_;
  };

  /// Blocks live as long as the last of these.
  using block_list = std::shared_ptr<std::pair<std::mutex, std::vector<std::unique_ptr<std::byte[]>>>>;
  static block_list make_blocks() { return std::make_shared<block_list::element_type>(); }

  node_communicator(thread_communicator ranks, std::vector<int> node_of_rank, block_list blocks)
      : ranks_(std::move(ranks)), nodes_(std::move(node_of_rank)), blocks_(std::move(blocks)) {}

  int rank() const { return ranks_.rank(); }
  int size() const { return ranks_.size(); }
  const std::vector<int>& nodes() const { return nodes_; }
  template <class Space>
  void exchange(const Space& space, std::span<const outgoing> out, std::span<const incoming> in) const {
    ranks_.exchange(space, out, in);
  }

  memory share(std::size_t bytes) const {
    constexpr std::size_t line = 64;
    std::byte* mine = nullptr;
    {
      auto owner = std::make_unique<std::byte[]>(bytes + line);  // zero
      void* start = owner.get();
      std::size_t room = bytes + line;
      mine = static_cast<std::byte*>(std::align(line, bytes, start, room));
      const std::scoped_lock lock(blocks_->first);
      blocks_->second.push_back(std::move(owner));
    }
    memory shared;
    const auto node_of = [&](int r) { return nodes_[static_cast<std::size_t>(r)]; };
    for (int r = 0; r < size(); ++r)
      if (node_of(r) == node_of(rank())) shared.ranks_.push_back(r);
    shared.blocks_.resize(shared.ranks_.size(), mine);
    std::vector<outgoing> out;
    std::vector<incoming> in;
    for (std::size_t place = 0; place < shared.ranks_.size(); ++place) {
      if (shared.ranks_[place] == rank()) continue;
      out.push_back({shared.ranks_[place], std::as_bytes(std::span(&mine, 1))});
      in.push_back({shared.ranks_[place], std::as_writable_bytes(std::span(&shared.blocks_[place], 1))});
    }
    ranks_.exchange(serial_space{}, out, in);
    return shared;
  }

 private:
  thread_communicator ranks_;
  std::vector<int> nodes_;
  block_list blocks_;
};

}  // namespace adasum::test
