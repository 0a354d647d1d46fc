// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//     adasum_scale_model RANKS BYTES…
//     adasum_scale_model speeds
//
// What the model of schedules/cost.hpp says of the schedules that adasum_scale_allreduce simulates, in the same form,
// and which of them `automatic` chooses:
//
//     RANKS BYTES NAME SECONDS
//     RANKS BYTES automatic NAME
//
// speeds: its constants for arithmetic, in the form in which adasum_scale_kernel_speeds prints measured ones.

#include <adasum/schedules/cheapest.hpp>
#include <adasum/schedules/choice.hpp>
#include <adasum/schedules/cost.hpp>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "../choice_names.hpp"

namespace {

using namespace adasum::schedules;

void print(int ranks, std::size_t bytes) {
  using kind = adasum::detail::choice::kind;
  const adasum::schedule_input what{bytes / sizeof(float), sizeof(float), 1, true};
  const auto predict = [&](adasum::detail::choice one) {
    const double time = seconds(cost_of(one.stages(0, ranks, what), 0, ranks, what));
    std::printf("%d %zu %s %.9g\n", ranks, bytes, name_of(one).c_str(), time);
  };
  for (const auto& one : adasum::detail::ways_of_doubling(ranks)) predict(one);
  for (const auto& one : adasum::detail::ways_of_halving(ranks)) predict(one);
  if (ranks <= adasum::detail::most_ranks_all_to_all) predict({kind::all_to_all});
  auto of_nodes = what;
  of_nodes.apart = true;
  std::printf("%d %zu automatic %s\n", ranks, bytes, name_of(adasum::detail::choose_schedule(ranks, of_nodes)).c_str());
}

void print_speeds() {
  const machine on;
  const double pair = on.per_pair_element.of(0) - 2 * on.per_term.of(0);  // to measure; the rest is to mix
  for (const std::size_t n : {1, 2, 4, 8, 16, 32, 64, 128}) {
    const double products = n == 2 ? pair : static_cast<double>(adasum::packed_size(n)) * on.per_product.of(0);
    std::printf("measure %zu 1 %.9g\nmix %zu 1 %.9g\nweigh %zu 0 0.001\n", n, products * 1e9, n,
                static_cast<double>(n) * on.per_term.of(0) * 1e9, n);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "speeds") {
    print_speeds();
    return 0;
  }
  for (int i = 2; i < argc; ++i)
    print(std::atoi(argv[1]), static_cast<std::size_t>(std::strtoull(argv[i], nullptr, 10)));
}
