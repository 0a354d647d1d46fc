// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "../core/error.hpp"
#include "../core/message.hpp"

namespace adasum {

/// A communicator of one rank.
class self_communicator {
 public:
  /// The number of this rank, from 0.
  int rank() const { return 0; }
  /// How many ranks there are.
  int size() const { return 1; }

  /// Memory that this rank shares with itself; see the concept shared_window.
  class memory {
   public:
    static constexpr bool same_address_space = true;
    explicit memory(std::size_t bytes) : block_(std::make_unique<line[]>((bytes + 63) / 64)) {}
    std::span<const int> ranks() const { return ranks_; }
    std::byte* of(std::size_t) const { return block_.get()->bytes; }

   private:
    struct alignas(64) line {
      std::byte bytes[64];
    };
    std::unique_ptr<line[]> block_;
    std::array<int, 1> ranks_{0};
  };
  memory share(std::size_t bytes) const { return memory(bytes); }

  template <class Space>
  void exchange(const Space&, std::span<const outgoing> out, std::span<const incoming> in) const {
    if (!out.empty() || !in.empty()) throw communication_error("adasum::self_communicator: there is no other rank");
  }
};

}  // namespace adasum
