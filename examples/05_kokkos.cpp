// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Adasum of Kokkos views, on a Kokkos execution space, layer by layer.
#include <adasum/adasum.hpp>
#include <adasum/exec/kokkos.hpp>

#include <cmath>
#include <cstdio>

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);
  const adasum::kokkos_space exec{Kokkos::DefaultHostExecutionSpace{}};
  const adasum::segments layers{600, 400};

  const Kokkos::View<float*, Kokkos::HostSpace> a("a", 1000), b("b", 1000), out("out", 1000);
  Kokkos::parallel_for(Kokkos::RangePolicy<Kokkos::DefaultHostExecutionSpace>(exec.instance(), 0, 1000), [=](int i) {
    a(i) = 1;
    b(i) = i < 600 ? 1.0f : i % 2 == 0 ? 1.0f : -1.0f;  // equal to a in the first layer, orthogonal in the second
  });

  adasum::adasum_pair(exec, a, b, out, layers);
  std::printf("equal: %g; orthogonal: %g %g\n", static_cast<double>(out(0)), static_cast<double>(out(600)),
              static_cast<double>(out(601)));
  const auto near = [](float x, float y) { return std::abs(x - y) < 1e-6f; };
  return near(out(0), 1) && near(out(600), 2) && near(out(601), 0) ? 0 : 1;
}
