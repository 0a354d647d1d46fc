// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// adasum_pair in place: kokkos_space on the default host execution space against serial_space. Names:
// kokkos/<space>/<N>.
#include <benchmark/benchmark.h>

#include <adasum/adasum.hpp>
#include <adasum/exec/kokkos.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "noise.hpp"

namespace {

template <class Space>
void add(const char* name, const Space& space, std::size_t length) {
  const auto body = [=](benchmark::State& state) {
    std::vector<float> a(length), b(length);
    fill_with_noise(std::span(a), 1);
    fill_with_noise(std::span(b), 2);
    for (auto _ : state) {
      adasum::adasum_pair(space, a, b, a);
      benchmark::ClobberMemory();
    }
  };
  benchmark::RegisterBenchmark(("kokkos/" + std::string(name) + "/" + std::to_string(length)).c_str(), body)
      ->Unit(benchmark::kMicrosecond)
      ->UseRealTime();
}

}  // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);
  using execution = Kokkos::DefaultHostExecutionSpace;
  for (const std::size_t length : {std::size_t{1} << 15, std::size_t{1} << 20, std::size_t{1} << 24}) {
    add("serial_space", adasum::serial_space{}, length);
    add("kokkos_space", adasum::kokkos_space{execution{}}, length);
  }
  benchmark::AddCustomContext("kokkos", std::string(execution::name()) + " of Kokkos " +
                                            std::to_string(KOKKOS_VERSION / 10000) + "." +
                                            std::to_string(KOKKOS_VERSION / 100 % 100) + ", " +
                                            std::to_string(execution{}.concurrency()) + " threads");
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::ClearRegisteredBenchmarks();  // they hold execution spaces, which must not outlive Kokkos
}
