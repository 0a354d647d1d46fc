// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <chrono>
#include <cstddef>
#include <limits>
#include <memory>
#include <span>
#include <utility>

#include "../../core/concepts.hpp"
#include "../../core/optional_members.hpp"

namespace adasum::detail::any {

/// Memory that ranks share, of any type; see the concept shared_window.
class memory {
 public:
  static constexpr bool same_address_space = false;

  template <shared_window Memory>
  memory(Memory held, std::size_t bytes) : held_(std::make_unique<holder<Memory>>(std::move(held), bytes)) {}

  std::span<const int> ranks() const { return held_->ranks(); }
  std::byte* of(std::size_t index) const { return held_->of(index); }
  std::size_t bytes() const { return held_->bytes(); }
  bool has_left(std::size_t index) const { return held_->has_left(index); }
  bool alive() const { return held_->alive(); }
  std::chrono::duration<double> timeout ADASUM_NO_MACRO() const { return (held_->timeout)(); }
  void progress() const { held_->progress(); }
  void rest() const { held_->rest(); }

 private:
  struct methods {
    virtual ~methods() = default;
    virtual std::span<const int> ranks() const = 0;
    virtual std::byte* of(std::size_t index) const = 0;
    virtual std::size_t bytes() const = 0;
    virtual bool has_left(std::size_t index) const = 0;
    virtual bool alive() const = 0;
    virtual std::chrono::duration<double> timeout ADASUM_NO_MACRO() const = 0;
    virtual void progress() const = 0;
    virtual void rest() const = 0;
  };
  template <class Memory>
  struct holder final : methods {
    holder(Memory memory, std::size_t bytes) : held(std::move(memory)), asked(bytes) {}
    std::span<const int> ranks() const override { return held.ranks(); }
    std::byte* of(std::size_t index) const override { return held.of(index); }
    std::size_t bytes() const override {
      if constexpr (requires { held.bytes(); })
        return held.bytes();
      else
        return asked;
    }
    bool has_left(std::size_t index) const override {
      if constexpr (requires { held.has_left(index); })
        return held.has_left(index);
      else
        return false;
    }
    bool alive() const override {
      if constexpr (requires { held.alive(); })
        return held.alive();
      else
        return true;
    }
    std::chrono::duration<double> timeout ADASUM_NO_MACRO() const override {
      if constexpr (requires { (held.timeout)(); })
        return (held.timeout)();
      else
        return std::chrono::duration<double>(std::numeric_limits<double>::infinity());
    }
    void progress() const override {
      if constexpr (requires { held.progress(); }) held.progress();
    }
    void rest() const override { detail::rest(held); }
    Memory held;
    std::size_t asked;
  };
  std::unique_ptr<methods> held_;
};

}  // namespace adasum::detail::any
