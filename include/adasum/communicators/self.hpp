// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <cstddef>
#include <span>

#include "../core/message.hpp"
#include "../detail/references/erased.hpp"

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
    explicit memory(std::size_t bytes);
    std::span<const int> ranks() const { return ranks_; }
    std::byte* of(std::size_t) const { return static_cast<std::byte*>(block_.get()); }

   private:
    detail::owned_object block_;
    int ranks_[1] = {0};
  };
  memory share(std::size_t bytes) const { return memory(bytes); }

  template <class Space>
  void exchange(const Space&, std::span<const outgoing> out, std::span<const incoming> in) const {
    if (!out.empty() || !in.empty()) refuse();
  }

 private:
  [[noreturn]] static void refuse();
};

}  // namespace adasum

#if ADASUM_DEFINITIONS
#include "../core/error.hpp"

namespace adasum {

ADASUM_INLINE self_communicator::memory::memory(std::size_t bytes) : block_(detail::no_object()) {
  struct alignas(64) line {
    std::byte bytes[64];
  };
  block_ = {new line[(bytes + 63) / 64](), [](void* held) { delete[] static_cast<line*>(held); }};
}

ADASUM_INLINE void self_communicator::refuse() {
  throw communication_error("adasum::self_communicator: there is no other rank");
}

}  // namespace adasum
#endif
