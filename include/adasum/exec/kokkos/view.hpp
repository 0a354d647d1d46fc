// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <Kokkos_Core.hpp>

#include <span>
#include <type_traits>

#include "../../core/gradient.hpp"

namespace adasum {

/// A Kokkos::View of rank one is a gradient as it is: const or not, unmanaged, a contiguous subview, in any memory
/// space that the execution space can reach. A strided one (LayoutStride, such as a column of a matrix) is refused at
/// compile time.
template <class Data, class... Properties>
struct gradient_traits<Kokkos::View<Data, Properties...>> {
  /// The type of the view.
  using view = Kokkos::View<Data, Properties...>;
  static_assert(
      static_cast<unsigned>(view::rank) == 1,
      "adasum: write Kokkos::View<T*, memory, Kokkos::MemoryTraits<Kokkos::Unmanaged>>(view.data(), view.span()): a "
      "gradient is a Kokkos::View of rank one");
  static_assert(!std::is_same_v<typename view::array_layout, Kokkos::LayoutStride>,
                "adasum: a strided Kokkos::View (LayoutStride) is no contiguous gradient; copy it to a View<T*> first");

  /// Its elements.
  static std::span<typename view::value_type> span(const view& v) { return {v.data(), v.extent(0)}; }
};

}  // namespace adasum
