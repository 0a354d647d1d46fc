// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <vector>

#include <adasum/adasum.hpp>
#include <adasum/exec/kokkos.hpp>

/// Calls on Kokkos' spaces, by the kernels for the host and by those for devices: for tools that look at templates only
/// where they are used.

namespace {

template <class Space>
void combine(const Space& exec, const adasum::segments& segs) {
  const Kokkos::View<float*, Kokkos::HostSpace> one("one", segs.total()), other("other", segs.total()),
      out("out", segs.total());
  adasum::adasum_pair(exec, one, other, out, segs);
  const std::vector<Kokkos::View<float*, Kokkos::HostSpace>> several{one, other};
  adasum::adasum_tree(exec, several, out, segs);
  adasum::combine(exec, several, out, adasum::rules::geometric_median{}, segs);
}

}  // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard session(argc, argv);
  const adasum::segments segs{6, 0, 4};
  combine(adasum::kokkos_space<Kokkos::DefaultHostExecutionSpace>(), segs);
  combine(adasum::kokkos_space<Kokkos::DefaultHostExecutionSpace, false>(), segs);
  return 0;
}
