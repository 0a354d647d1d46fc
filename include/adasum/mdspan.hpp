// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "core/config.hpp"

#include <concepts>
#include <cstddef>
#include <span>

#include "core/gradient.hpp"

namespace adasum {

namespace detail {

/// A std::mdspan or Kokkos::mdspan, known by its members, whose type alone says that its elements lie one after the other,
/// each once.
template <class A>
concept contiguous_mdspan = requires {
  typename A::layout_type;
  requires std::convertible_to<typename A::data_handle_type, typename A::element_type*>;
  requires std::same_as<typename A::reference, typename A::element_type&>;  // not computed by the accessor
  requires A::is_always_exhaustive() && A::is_always_unique();
};

}  // namespace detail

/// A std::mdspan, or one of the reference implementation that comes with Kokkos, is a gradient if its type alone says that
/// there is no gap between elements: of layout_right or layout_left. Of a layout that allows gaps, such as layout_stride,
/// give std::span(m.data_handle(), m.size()) if m.is_exhaustive() && m.is_unique().
template <detail::contiguous_mdspan A>
struct gradient_traits<A> {
  /// Its elements, in the order in which they are stored.
  static std::span<typename A::element_type> span(const A& array) {
    typename A::element_type* const first = array.data_handle();
    return {first, static_cast<std::size_t>(array.size())};
  }
};

}  // namespace adasum
