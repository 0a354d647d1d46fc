// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "../../core/concepts.hpp"
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
/// Whether a communicator is told of that; then note(comm, activity) does so.
template <class Comm>
struct own_activity {
  static constexpr bool is_noted = false;
};

/// Whether a communicator with share() has memory to share: one that is chosen at run time may have none.
template <class Comm>
struct own_sharing {
  static bool can_share(const Comm&) { return true; }
};

// ── any window ──

// Whether memory that ranks share has a member, as the page says it.
template <class Memory>
concept tells_who_has_left = requires(const Memory& memory, std::size_t i) {
  { memory.has_left(i) } -> std::convertible_to<bool>;
};
template <class Memory>
concept makes_progress = requires(const Memory& memory) {
  memory.progress();
};

/// Memory that ranks share, of any type, owned; see the concept shared_window.
class any_window {
 public:
  static constexpr bool same_address_space = false;

  /// @param bytes            that were asked for
  /// @param shares_addresses whether any address of one rank is valid on the others, and may be used
  template <shared_window Memory>
  any_window(Memory held, std::size_t bytes, bool shares_addresses = false)
      : held_(std::make_unique<holder<Memory>>(std::move(held), bytes)),
        ranks_(held_->ranks()),
        shares_addresses_(shares_addresses),
        most_looks_(own_memory<Memory>::most_looks) {
    of_rank_.reserve(ranks_.size());
    for (std::size_t i = 0; i < ranks_.size(); ++i) of_rank_.push_back(held_->of(i));
  }

  std::span<const int> ranks() const { return ranks_; }
  std::byte* of(std::size_t index) const { return of_rank_[index]; }
  bool shares_addresses() const { return shares_addresses_; }
  unsigned looks() const { return most_looks_; }
  std::size_t bytes() const { return held_->bytes(); }
  bool has_left(std::size_t index) const { return held_->has_left(index); }
  void progress() const { held_->progress(); }
  void let_others_run() const { held_->let_others_run(); }

 private:
  struct methods {
    virtual ~methods() = default;
    virtual std::span<const int> ranks() const = 0;
    virtual std::byte* of(std::size_t index) const = 0;
    virtual std::size_t bytes() const = 0;
    virtual bool has_left(std::size_t index) const = 0;
    virtual void progress() const = 0;
    virtual void let_others_run() const = 0;
  };

  template <class Memory>
  struct holder final : methods {
    holder(Memory memory, std::size_t bytes) : held(std::move(memory)), asked(bytes) {
      refuse_members_of_memory<Memory>();
    }
    std::span<const int> ranks() const override { return held.ranks(); }
    std::byte* of(std::size_t index) const override { return held.of(index); }
    std::size_t bytes() const override { return own_memory<Memory>::bytes(held, asked); }
    bool has_left(std::size_t index) const override {
      if constexpr (tells_who_has_left<Memory>)
        return held.has_left(index);
      else
        return false;
    }
    void progress() const override {
      if constexpr (makes_progress<Memory>) held.progress();
    }
    void let_others_run() const override { own_memory<Memory>::rest(held); }

    Memory held;
    std::size_t asked;
  };

  std::unique_ptr<methods> held_;
  std::span<const int> ranks_;
  std::vector<std::byte*> of_rank_;
  bool shares_addresses_;
  unsigned most_looks_;
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
