// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

/// Members that the concepts once named. A type that has one does not do what its author expects, so it does not compile.
namespace adasum::detail {

template <class Space>
constexpr void refuse_former_members_of_space() {
  static_assert(
      !requires { Space::round_bytes; } && !requires(const Space& space) { for_pairs(space); },
      "adasum: the space has a member round_bytes or a function for_pairs(space), which are no longer asked for: the "
      "library's "
      "own spaces alone work in rounds, and have spaces for pairs; see core/concepts.hpp");
}

template <class Rule>
constexpr void refuse_former_members_of_rule() {
  static_assert(
      !requires { Rule::needs_gram; } && !requires { Rule::needs_accurate_gram; } &&
          !requires { Rule::needs_distances; },
      "adasum: the rule has a member needs_gram, needs_accurate_gram or needs_distances, which is now `static "
      "constexpr "
      "adasum::inner_products needs`: none, accurate or distances; see core/concepts.hpp");
}

template <class Memory>
constexpr void refuse_former_members_of_memory() {
  static_assert(
      !requires(const Memory& memory) { memory.alive(); },
      "adasum: the shared memory has a member alive(), which is no longer asked for: of(i) must stay valid as long as "
      "the "
      "object exists; see core/concepts.hpp");
  static_assert(
      !requires(const Memory& memory) { memory.rest(); } && !requires { Memory::most_looks; },
      "adasum: the shared memory has a member rest() or most_looks, which is no longer asked for: progress() is called "
      "while "
      "a rank waits, and may sleep; see core/concepts.hpp");
}

}  // namespace adasum::detail
