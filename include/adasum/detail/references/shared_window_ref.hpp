// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <concepts>
#include <cstddef>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "../../core/concepts.hpp"
#include "erased.hpp"
#include "refused_members.hpp"

/// Memory that ranks share, as the engine sees it; and what the library's own communicators and their memory tell it beyond the
/// concepts.
namespace adasum::detail {

// ── beyond the concepts ──
// Each specialises these templates where it is defined; for other types, what the templates say holds.

/// Of memory that ranks share.
struct memory_defaults {
  /// How often a rank looks at what another one writes there, before it offers the processor (core/waiting.hpp): seldom
  /// where it waits for ranks that run when it does not.
  static constexpr unsigned most_looks = 1u << 15;
  /// How many bytes each rank has, where another rank may have asked for fewer. @param asked  by this rank
  template <class Memory>
  static std::size_t bytes(const Memory&, std::size_t asked) {
    return asked;
  }
  /// Lets others have the processor for a moment.
  template <class Memory>
  static void rest(const Memory&) {
    std::this_thread::yield();
  }
};
template <class Memory>
struct own_memory : memory_defaults {};

/// What a rank does in a reduction: simulated ranks distinguish waits that only a timeout can end from others.
enum class reduction_activity {
  scheduled,    ///< what its stages call for
  unscheduled,  ///< it adds numbers that they do not call for: see recombine. A rank that has failed may not know
  withdrawn     ///< it has failed, and lets no other wait
};
/// A function that tells a communicator of that; null for one that does not want to know.
template <class Comm>
struct own_activity {
  static constexpr void (*note)(const void* comm, reduction_activity what) = nullptr;
};

/// Whether a communicator with share() has memory to share: one that is chosen at run time may have none.
template <class Comm>
struct own_sharing {
  static bool can_share(const Comm&) { return true; }
};

// ── any window ──

/// The members of memory that ranks share (core/concepts.hpp), with what it tells beyond the concept.
struct window_table {
  std::size_t (*bytes)(const void* memory, std::size_t asked);
  bool (*has_left)(const void* memory, std::size_t index);
  void (*progress)(const void* memory);
  void (*let_others_run)(const void* memory);
  unsigned most_looks;
};

template <class Memory>
const Memory& memory_at(const void* memory) {
  return *static_cast<const Memory*>(memory);
}
template <class Memory>
inline constexpr window_table table_of_window{
    .bytes = [](const void* memory,
                std::size_t asked) { return own_memory<Memory>::bytes(memory_at<Memory>(memory), asked); },
    .has_left = [](const void* memory, std::size_t index) -> bool {
      if constexpr (tells_who_has_left<Memory>)
        return memory_at<Memory>(memory).has_left(index);
      else
        return false;
    },
    .progress =
        [](const void* memory) {
          if constexpr (makes_progress<Memory>) memory_at<Memory>(memory).progress();
        },
    .let_others_run = [](const void* memory) { own_memory<Memory>::rest(memory_at<Memory>(memory)); },
    .most_looks = own_memory<Memory>::most_looks};

/// Memory that ranks share, of any type, owned; see the concept shared_window.
class any_window {
 public:
  static constexpr bool same_address_space = false;

  /// @param bytes            that were asked for
  /// @param shares_addresses whether any address of one rank is valid on the others, and may be used
  template <shared_window Memory>
  any_window(Memory held, std::size_t bytes, bool shares_addresses = false)
      : held_(own(std::move(held))),
        table_(&table_of_window<Memory>),
        asked_(bytes),
        shares_addresses_(shares_addresses) {
    refuse_members_of_memory<Memory>();
    const auto& memory = memory_at<Memory>(held_.get());
    ranks_ = memory.ranks();
    of_rank_.reserve(ranks_.size());
    for (std::size_t i = 0; i < ranks_.size(); ++i) of_rank_.push_back(memory.of(i));
  }

  std::span<const int> ranks() const { return ranks_; }
  std::byte* of(std::size_t index) const { return of_rank_[index]; }
  bool shares_addresses() const { return shares_addresses_; }
  unsigned looks() const { return table_->most_looks; }
  std::size_t bytes() const { return table_->bytes(held_.get(), asked_); }
  bool has_left(std::size_t index) const { return table_->has_left(held_.get(), index); }
  void progress() const { table_->progress(held_.get()); }
  void let_others_run() const { table_->let_others_run(held_.get()); }

 private:
  owned_object held_;
  const window_table* table_;
  std::size_t asked_;
  std::span<const int> ranks_;
  std::vector<std::byte*> of_rank_;
  bool shares_addresses_;
};

/// Whether any address of one rank is valid on the others.
template <class Memory>
constexpr bool shares_addresses(const Memory& memory) {
  if constexpr (std::derived_from<Memory, any_window>)
    return memory.shares_addresses();
  else
    return Memory::same_address_space;
}

/// See own_memory::most_looks.
template <class Memory>
constexpr unsigned looks_at(const Memory& memory) {
  if constexpr (std::derived_from<Memory, any_window>)
    return memory.looks();
  else
    return own_memory<Memory>::most_looks;
}

/// Memory of any type asks the memory that it holds.
template <std::derived_from<any_window> Memory>
struct own_memory<Memory> : memory_defaults {
  static std::size_t bytes(const any_window& memory, std::size_t) { return memory.bytes(); }
  static void rest(const any_window& memory) { memory.let_others_run(); }
};

}  // namespace adasum::detail
