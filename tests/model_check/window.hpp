// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include <adasum/detail/references/shared_window_ref.hpp>

#include "ranks.hpp"
#include "scenario.hpp"

namespace adasum::test::model {

inline constexpr std::size_t block_bytes = 1024, gradients_at = most_ranks * block_bytes, gradient_bytes = 64;
inline constexpr std::size_t votes_at = gradients_at + most_ranks * gradient_bytes, votes_bytes = 512;
inline constexpr std::array<int, most_ranks> rank_numbers{0, 1, 2, 3};

/// Memory of threads, or of processes.
template <bool one_address_space>
struct window {
  static constexpr bool same_address_space = one_address_space;
  std::size_t count;
  std::span<const int> ranks() const { return std::span(rank_numbers).first(count); }
  std::byte* of(std::size_t i) const { return shared_memory() + i * block_bytes; }
  void progress() const { in_loop(); }
};

/// Where ranks tell each other what they are about to do.
struct window_of_votes : window<true> {
  std::byte* of(std::size_t i) const { return shared_memory() + votes_at + i * votes_bytes; }
};

}  // namespace adasum::test::model

template <bool one_address_space>
struct adasum::detail::own_memory<adasum::test::model::window<one_address_space>> : memory_defaults {
  static constexpr unsigned most_looks = 200;  // fewer than the explorer is patient for
};
template <>
struct adasum::detail::own_memory<adasum::test::model::window_of_votes>
    : own_memory<adasum::test::model::window<true>> {};
