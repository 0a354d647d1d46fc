// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One program of two sources, of which one reads the whole library, and the other only its declarations: there is one engine
// in it. Compiled once with BOTH_WAYS_MAIN and without ADASUM_COMPILED, and once the other way about.
#include <adasum/adasum.hpp>

#include <cstdio>
#include <thread>
#include <vector>

#if defined(ADASUM_COMPILED)
namespace declared {
#else
namespace defined {
#endif

/// The engine, as this source finds it.
auto* engine() { return &adasum::detail::run_once; }

std::vector<float> sum_on_threads() {
  const auto ranks = adasum::thread_communicator::group(2);
  std::vector<float> mine = {3, 0, 4}, other = {0, 5, 0};
  std::thread another([&] { adasum::adasum_allreduce(adasum::serial_space{}, ranks[1], other); });
  adasum::adasum_allreduce(adasum::serial_space{}, ranks[0], mine);
  another.join();
  return mine;
}

}  // namespace declared or defined

#if defined(BOTH_WAYS_MAIN)
namespace declared {
decltype(&adasum::detail::run_once) engine();
std::vector<float> sum_on_threads();
}  // namespace declared

int main() {
  if (declared::engine() != defined::engine()) return std::puts("there are two engines"), 1;
  if (const std::vector<float> sum{3, 5, 4}; declared::sum_on_threads() != sum || defined::sum_on_threads() != sum)
    return std::puts("wrong sum"), 1;
}
#endif
