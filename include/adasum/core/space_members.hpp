// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <concepts>
#include <type_traits>

#include "concepts.hpp"
#include "scalar.hpp"

/// The spaces that an execution space offers in place of itself (concepts.hpp), or what stands for them.
namespace adasum::detail {

/// Whether vectors of T are combined in double where their inner products do not decide.
template <class Space, class T>
inline constexpr bool recombines_in_double = std::same_as<T, double> || requires(const Space& space) {
  requires execution_space<std::remove_cvref_t<decltype(for_recombining(space))>, double>;
};

/// The space for copies of vectors of T that are combined vector by vector.
template <scalar T, class Space>
decltype(auto) space_of_copies(const Space& space) {
  if constexpr (recombines_in_double<Space, T> && !std::same_as<T, double>)
    return for_recombining(space);
  else
    return (space);
}

/// The space for calls that combine two vectors: what it offers for pairs, or itself.
template <class Space>
decltype(auto) space_for_pairs(const Space& space) {
  if constexpr (requires { for_pairs(space); })
    return for_pairs(space);
  else
    return (space);
}

}  // namespace adasum::detail
