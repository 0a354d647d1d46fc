// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "../../core/concepts.hpp"
#include "own_communicators.hpp"
#include "refused_members.hpp"

namespace adasum::detail {

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
