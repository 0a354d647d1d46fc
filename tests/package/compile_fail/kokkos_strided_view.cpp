// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a strided Kokkos::View \(LayoutStride\) is no contiguous gradient
#include <adasum/adasum.hpp>
#include <adasum/exec/kokkos.hpp>

#ifdef CORRECTED
using layout = Kokkos::LayoutRight;
#else
using layout = Kokkos::LayoutStride;
#endif

void combine(const Kokkos::View<float*, layout, Kokkos::HostSpace>& a) {
  adasum::adasum_pair(adasum::serial_space{}, a, a, a);
}
