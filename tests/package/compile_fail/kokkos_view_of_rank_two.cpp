// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: write Kokkos::View<T\*, memory, Kokkos::MemoryTraits<Kokkos::Unmanaged>>\(view.data\(\), view.span\(\)\)
#include <adasum/adasum.hpp>
#include <adasum/exec/kokkos.hpp>

#ifdef CORRECTED
using view_data = float*;
#else
using view_data = float**;
#endif

void combine(const Kokkos::View<view_data, Kokkos::HostSpace>& a) {
  adasum::adasum_pair(adasum::serial_space{}, a, a, a);
}
