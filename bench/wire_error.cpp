// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How far 16-bit messages (options::wire) move the result: ‖with − without‖ / ‖without‖ of Adasum of gradients that
// share a direction, as a table in Markdown. Ranks are threads.
#include <adasum/adasum.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <thread>
#include <vector>

#include "noise.hpp"

namespace {

constexpr std::size_t length = 100'000;
using gradient = std::vector<float>;

/// Half of each gradient's square is along one direction.
std::vector<gradient> gradients_of(int ranks) {
  gradient common(length);
  fill_with_noise(std::span(common), 1000);
  std::vector<gradient> all;
  for (int r = 0; r < ranks; ++r) {
    all.emplace_back(length);
    fill_with_noise(std::span(all.back()), static_cast<std::uint32_t>(r));
    for (std::size_t x = 0; x < length; ++x) all.back()[x] += common[x];
  }
  return all;
}

template <class Schedule>
gradient reduce(const std::vector<gradient>& gradients, const Schedule& order, adasum::wire_format wire) {
  auto results = gradients;
  {
    std::vector<std::jthread> threads;
    for (const auto& comm : adasum::thread_communicator::group(static_cast<int>(gradients.size())))
      threads.emplace_back([&, comm] {
        adasum::options choices;
        choices.wire = wire;
        adasum::adasum_allreduce(adasum::serial_space{}, comm, results[static_cast<std::size_t>(comm.rank())],
                                 adasum::segments{length}, order, choices);
      });
  }
  return results.front();
}

template <class Schedule>
void print_row(int ranks, const Schedule& order) {
  const auto gradients = gradients_of(ranks);
  const auto exact = reduce(gradients, order, adasum::wire_format::same);
  std::printf("| %d | `%s` |", ranks, Schedule::name.data());
  for (const auto wire : {adasum::wire_format::bfloat16, adasum::wire_format::binary16}) {
    const auto rounded = reduce(gradients, order, wire);
    double error = 0, square = 0;
    for (std::size_t x = 0; x < length; ++x) {
      error += std::pow(static_cast<double>(rounded[x]) - static_cast<double>(exact[x]), 2);
      square += std::pow(static_cast<double>(exact[x]), 2);
    }
    std::printf(" %.1e |", std::sqrt(error / square));
  }
  std::puts("");
}

}  // namespace

int main() {
  std::puts("| ranks | schedule | bfloat16 | binary16 |\n|---|---|---|---|");
  for (const int ranks : {2, 4, 8, 16}) {
    print_row(ranks, adasum::schedules::recursive_doubling{});
    print_row(ranks, adasum::schedules::recursive_halving{});
    print_row(ranks, adasum::schedules::all_to_all{});
  }
}
