// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kokkos's kernels for memory of the host, and those for a device, which run on the host here.
#include <algorithm>
#include <vector>

#include <adasum/exec/kokkos.hpp>

#include "check_findings.hpp"
#include "one_process.hpp"

namespace test_of_works_together_kokkos {

using namespace adasum;
using namespace adasum::test;

TEST_CASE("works together: Kokkos") {
  const Kokkos::ScopeGuard session;
  findings found;
  const auto in_a_view = []<class T>(const std::vector<T>& values) {
    const Kokkos::View<T*, Kokkos::HostSpace> view("gradient", values.size());
    std::ranges::copy(values, view.data());
    return view;
  };
  try_space(kokkos_space<Kokkos::DefaultHostExecutionSpace>(), "kokkos_space of the host", found, in_a_view);
  try_space(kokkos_space<Kokkos::DefaultHostExecutionSpace, false>(), "kokkos_space of a device", found, in_a_view);
  check_findings(found, "kokkos");
}

}  // namespace test_of_works_together_kokkos
