// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "../tiles.hpp"

/// What kernels on a device need besides their vectors, in memory of the device.
namespace adasum::detail::kokkos {

/// A pointer is no element of a view: View<T**> has two dimensions.
struct vector_address {
  const void* elements;
};
template <class T>
KOKKOS_INLINE_FUNCTION const T& element_of(const vector_address& vector, std::size_t x) {
  return static_cast<const T*>(vector.elements)[x];
}

template <class T>
std::vector<vector_address> addresses_of(std::span<const T* const> vectors) {
  std::vector<vector_address> addresses;
  for (const T* const vector : vectors) addresses.push_back({vector});
  return addresses;
}

/// Memory that is kept between calls: to free memory of a device, Kokkos waits for all of it.
template <class ExecutionSpace>
class workspace {
 public:
  using memory_space = typename ExecutionSpace::memory_space;
  template <class Element>
  using view = Kokkos::View<Element*, memory_space>;

  view<tile> tiles;
  view<std::size_t> first_tile;
  view<vector_address> addresses;
  view<double> partials, numbers;

  /// A view of these members that has grown to at least `count` elements; what was in it may be lost.
  template <class Element>
  static const view<Element>& at_least(view<Element>& memory, std::size_t count) {
    if (memory.extent(0) < count)
      memory = view<Element>(Kokkos::view_alloc(Kokkos::WithoutInitializing, std::string("adasum")), 2 * count);
    return memory;
  }

  /// The same with a copy of the host's `values` in it, which must stay until the instance has been fenced.
  template <class Element, class Values>
  static const view<Element>& upload(const ExecutionSpace& instance, view<Element>& memory, const Values& values) {
    at_least(memory, values.size());
    if (!values.empty())
      Kokkos::deep_copy(instance, first_of(memory, values.size()),
                        on_host<const Element>(values.data(), values.size()));
    return memory;
  }

  template <class Element>
  static void download(const ExecutionSpace& instance, const view<Element>& memory, Element* to, std::size_t count) {
    Kokkos::deep_copy(instance, on_host(to, count), first_of(memory, count));
  }

 private:
  template <class Element>
  static auto on_host(Element* elements, std::size_t count) {
    return Kokkos::View<Element*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>(elements, count);
  }
  template <class Element>
  static auto first_of(const view<Element>& memory, std::size_t count) {
    return Kokkos::View<Element*, memory_space, Kokkos::MemoryTraits<Kokkos::Unmanaged>>(memory.data(), count);
  }
};

}  // namespace adasum::detail::kokkos
