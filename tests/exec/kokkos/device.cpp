// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// kokkos_space on Kokkos::Cuda, and beside cuda_space: the same numbers, and how long both take.
#include <Kokkos_Core.hpp>

#include <adasum/adasum.hpp>
#include <adasum/exec/kokkos.hpp>

#include <cstdio>

#include "support/device.hpp"
#include "support/oracle_errors.hpp"
#include "support/random_gradients.hpp"
#include "support/sizes.hpp"

using namespace adasum;
using namespace adasum::test;

namespace {

/// Kokkos, from the first test to the end of the program.
void start_kokkos() {
  struct session {
    session() { Kokkos::initialize(); }
    ~session() { Kokkos::finalize(); }
  };
  static const session started;
}

using space = kokkos_space<Kokkos::Cuda>;
static_assert(execution_space<space, float> && execution_space<space, __half> && device_space<space>);

}  // namespace

TEST_CASE_TEMPLATE("adasum_tree on Kokkos::Cuda against long double", T, ADASUM_TEST_CUDA_SCALARS) {
  start_kokkos();
  const space exec;
  const segments cut{40, 0, 50001, 1, 20000};
  for (const std::size_t n : sizes{1, 2, 3, 8}) {
    CAPTURE(n);
    const auto g = random_gradients<T>(n, cut.total(), n);
    const auto oracle = oracle_with_errors<T>(rules::adasum{}, g, cut);
    const auto arrays = on_device(g);
    const device_array<T> out(g[0]);
    adasum_tree(exec, spans_of(arrays), out.all(), cut);
    exec.fence();
    CHECK(worst_error_over_bound(out.values(), oracle.values, oracle.gram_error, cut) <= 1);
  }
}

TEST_CASE("a view of the device is a gradient; a reduction through the host") {
  start_kokkos();
  const space exec;
  const Kokkos::View<float*, Kokkos::CudaSpace> view("gradient", 5000);
  Kokkos::deep_copy(view, 3.0f);
  adasum_allreduce(exec, self_communicator{}, view);
  adasum_pair(exec, view, view, view);
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, view);
  CHECK(host(4999) == 3);
}

TEST_CASE("beside cuda_space: microseconds of a pair of 64 Mi floats") {
  start_kokkos();
  const std::size_t length = std::size_t{1} << 26;
  const Kokkos::View<float*, Kokkos::CudaSpace> a("a", length), b("b", length);
  Kokkos::parallel_for(
      Kokkos::RangePolicy<Kokkos::Cuda>(0, length), KOKKOS_LAMBDA(const std::size_t i) {
        a(i) = static_cast<float>(i % 1013) - 506;
        b(i) = static_cast<float>(i % 1009) - 504;
      });
  const space by_kokkos;
  const cuda_space by_cuda;
  const auto time = [&](const auto& exec) {
    adasum_pair(exec, a, b, a);
    exec.fence();
    const Kokkos::Timer timer;
    for (int run = 0; run < 10; ++run) adasum_pair(exec, a, b, a);
    exec.fence();
    return timer.seconds() / 10 * 1e6;
  };
  for (int turn = 0; turn < 5; ++turn) {
    const double kokkos = time(by_kokkos), cuda = time(by_cuda);
    std::printf("kokkos_device pair/float/%zu: kokkos %.1f cuda %.1f ratio %.3f\n", length, kokkos, cuda,
                kokkos / cuda);
    CHECK(kokkos > 0);
  }
}
