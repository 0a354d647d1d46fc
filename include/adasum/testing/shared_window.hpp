// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../core/concepts.hpp"
#include "../core/error.hpp"
#include "../core/optional_members.hpp"
#include "../detail/references/shared_window_ref.hpp"
#include "sample_messages.hpp"

namespace adasum::detail {

/// What check_communicator does with memory that ranks share. Whatever a rank finds, it makes the same exchanges and calls
/// of share() as the others, so that none waits for it; but it looks at no memory that has turned out to be wrong.
template <shared_memory_communicator Comm, class Space>
class shared_window_check {
 public:
  shared_window_check(const Comm& comm, const Space& space) : comm_(comm), space_(space) {}

  /// @return what is wrong first, seen from this rank; empty if nothing is
  std::string run() {
    for (const std::size_t bytes : {1u, 64u, 1000u, 65'536u}) {
      const auto first = share(bytes), second = share(bytes);
      guarded([&] { check_ranks(*first), check_zero(*first, bytes), check_zero(*second, bytes); });
      meet();
      guarded([&] { fill(*first, bytes, 1), fill(*second, bytes, 2); });
      meet();
      guarded([&] { check_filled(*first, bytes, 1), check_filled(*second, bytes, 2); });
      meet();
    }
    const auto memory = share(sizeof(cell));
    if (meet()) guarded([&] { check_atomics(*memory); });
    meet();
    return problem_;
  }

 private:
  void note(const std::string& problem) {
    if (problem_.empty()) problem_ = "share: " + problem;
  }
  template <class Step>
  void guarded(const Step& step) {
    if (problem_.empty()) try {
        step();
      } catch (const std::exception& wrong) {
        note(wrong.what());
      }
  }
  std::optional<any_window> share(std::size_t bytes) {
    try {
      auto shared = comm_.share(bytes);
      constexpr bool shares_addresses = decltype(shared)::same_address_space;
      return any_window(std::move(shared), bytes, shares_addresses);
    } catch (const std::exception& wrong) {
      note(std::string("an exception: ") + wrong.what());
      return {};
    }
  }

  /// A barrier by messages. @return whether no rank has found anything
  bool meet() {
    if (comm_.size() == 1) return problem_.empty();
    const auto peers = static_cast<std::size_t>(comm_.size());
    std::vector<std::byte> found(peers, std::byte{1});
    const std::byte mine{problem_.empty() ? std::uint8_t{0} : std::uint8_t{1}};
    std::vector<outgoing> out;
    std::vector<incoming> in;
    for (std::size_t peer = 0; peer < peers; ++peer)
      if (static_cast<int>(peer) != comm_.rank()) {
        out.push_back({static_cast<int>(peer), std::span(&mine, 1)});
        in.push_back({static_cast<int>(peer), std::span(found).subspan(peer, 1)});
      } else {
        found[peer] = mine;
      }
    try {
      comm_.exchange(space_, out, in);
    } catch (const std::exception& wrong) {
      note(std::string("an exchange throws: ") + wrong.what());
      return false;
    }
    return std::ranges::count(found, std::byte{0}) == comm_.size();
  }

  static std::size_t self(const any_window& memory, int rank) {
    const std::span<const int> ranks = memory.ranks();
    return static_cast<std::size_t>(std::ranges::find(ranks, rank) - ranks.begin());
  }

  void check_ranks(const any_window& memory) {
    const std::span<const int> ranks = memory.ranks();
    if (std::ranges::adjacent_find(ranks, std::ranges::greater_equal{}) != ranks.end())
      note("ranks() are not in ascending order");
    if (ranks.empty() || ranks.front() < 0 || ranks.back() >= comm_.size())
      throw bad_input("ranks() are empty, or name a rank that the communicator does not have");
    if (self(memory, comm_.rank()) == ranks.size()) throw bad_input("ranks() lack the calling rank");
    if constexpr (says_nodes<Comm>) {
      const auto& found = comm_.nodes();
      const std::span<const int> nodes(found);
      const bool are_of_one = std::ranges::adjacent_find(nodes, std::ranges::not_equal_to{}) == nodes.end();
      if (are_of_one != (ranks.size() == nodes.size())) note("nodes() contradict ranks()");
    } else if (ranks.size() != static_cast<std::size_t>(comm_.size())) {
      note("ranks() lack a rank, and there are no nodes()");
    }
    for (std::size_t i = 0; i < ranks.size(); ++i)
      if (memory.has_left(i)) note("has_left() is true for a rank that is there");
  }

  void check_zero(const any_window& memory, std::size_t bytes) {
    for (std::size_t i = 0; i < memory.ranks().size(); ++i) {
      const auto* const at = memory.of(i);
      if (at == nullptr || reinterpret_cast<std::uintptr_t>(at) % 64 != 0)
        throw bad_input("the memory of a rank is not aligned to 64 bytes");
      if (std::ranges::any_of(std::span(at, bytes), [](std::byte one) { return one != std::byte{0}; }))
        note("new memory is not zero");
    }
  }

  static std::vector<std::byte> contents(int rank, std::size_t bytes, unsigned number) {
    return sample_message{rank, rank, bytes, number}.contents();
  }
  void fill(const any_window& memory, std::size_t bytes, unsigned number) {
    const auto mine = contents(comm_.rank(), bytes, number);
    std::ranges::copy(mine, memory.of(self(memory, comm_.rank())));
  }
  void check_filled(const any_window& memory, std::size_t bytes, unsigned number) {
    const std::span<const int> ranks = memory.ranks();
    for (std::size_t i = 0; i < ranks.size(); ++i)
      if (std::memcmp(memory.of(i), contents(ranks[i], bytes, number).data(), bytes) != 0)
        note("memory of rank " + std::to_string(ranks[i]) + " does not hold what that rank has written");
  }

  struct alignas(64) cell {
    std::atomic<std::uint64_t> step;
    std::atomic<const std::uint64_t*> address;
    std::uint64_t value;  // written by its rank before a step, read by the others after it
  };

  /// Ranks go in step, and see what the others wrote before each step.
  void check_atomics(const any_window& memory) {
    const auto cell_of = [&](std::size_t i) -> cell& { return *std::launder(reinterpret_cast<cell*>(memory.of(i))); };
    auto& mine = cell_of(self(memory, comm_.rank()));
    own_value_ = 1000 + static_cast<std::uint64_t>(comm_.rank());
    mine.address.store(&own_value_, std::memory_order_relaxed);
    bool in_step = true;
    for (std::uint64_t step = 1; step <= 200 && in_step; ++step) {
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
      if (step % 2 == 1) mine.value = step;
      mine.step.store(step, std::memory_order_release);
      for (std::size_t i = 0; i < memory.ranks().size() && in_step; ++i) {
        while (in_step && cell_of(i).step.load(std::memory_order_acquire) < step) {
          in_step = std::chrono::steady_clock::now() < deadline;
          std::this_thread::yield();
          memory.progress();
        }
        if (in_step && step % 2 == 1 && cell_of(i).value != step) note("a rank does not see what another has written");
      }
    }
    if (!in_step) note("a rank does not see the atomics of another");
    if (!in_step || !memory.shares_addresses()) return;
    for (std::size_t i = 0; i < memory.ranks().size(); ++i) {
      const auto address = cell_of(i).address.load(std::memory_order_relaxed);
      std::uint64_t found = 0;
      std::memcpy(&found, address, sizeof found);
      if (found != 1000 + static_cast<std::uint64_t>(memory.ranks()[i]))
        note("same_address_space: an address of another rank is not valid here");
    }
  }

  const Comm& comm_;
  const Space& space_;
  std::string problem_;
  std::uint64_t own_value_ = 0;  // others read it until the last barrier
};

}  // namespace adasum::detail
