// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//     adasum_scale_regret
//
// How much longer the schedule that `automatic` chooses takes than the fastest of those it chooses from, by the model of
// schedules/cost.hpp, on networks that it does not know: a table for docs/scale.md. Beside it, the choice that would be furthest
// from the fastest on none of these networks. (Up to 1 KiB, where it never cuts gradients, both are compared with those that do.)

#include <adasum/core/node_groups.hpp>
#include <adasum/schedules/cheapest.hpp>
#include <adasum/schedules/choice.hpp>
#include <adasum/schedules/cost.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <vector>

namespace {

using namespace adasum::schedules;
using adasum::detail::choice;

struct network {
  const char* name;
  double gigabits, microseconds;

  machine on() const {
    return {
        .across = {.latency = microseconds * 1e-6, .per_message = microseconds * 0.2e-6, .per_byte = 8e-9 / gigabits}};
  }
};
constexpr network networks[] = {{"Ethernet", 1, 50},    {"Ethernet", 1, 30},
                                {"Ethernet", 10, 30},   {"Ethernet", 10, 15},
                                {"Ethernet", 25, 10},   {"InfiniBand, RoCE", 100, 2},
                                {"InfiniBand", 100, 1}, {"InfiniBand", 200, 1},
                                {"InfiniBand", 400, 1}, {"Ethernet of a cloud", 100, 15}};

/// The costs of all candidates for one number of nodes and ranks, and one gradient.
struct candidates {
  std::vector<cost> all;
  std::size_t chosen = 0;

  candidates(int nodes, int ranks_of_node, std::size_t length, std::size_t segments) {
    const int size = nodes * ranks_of_node;
    std::vector<int> node_of;
    for (int rank = 0; ranks_of_node > 1 && rank < size; ++rank) node_of.push_back(rank / ranks_of_node);
    adasum::schedule_input what{length, sizeof(float), segments, true};
    what.nodes = node_of;
    what.apart = ranks_of_node == 1;
    std::optional<adasum::node_leaves> leaves;
    if (ranks_of_node > 1) leaves.emplace(adasum::node_groups(node_of));

    const auto add = [&](const choice& one) {
      const auto stages = leaves ? one.stages(*leaves, 0, what) : one.stages(0, size, what);
      all.push_back(cost_of(stages, 0, size, what));
      if (leaves) all.back().ranks_on_link = adasum::detail::carriers_of_node(leaves->groups(), *one.by_node);
    };
    const auto add_by_node = [&](const std::vector<choice>& across, carried each) {
      const auto radix = adasum::detail::radix_inside(*leaves, each, what);
      for (const auto& one : across) add({one.which, one.radix, each, one.most_parts, radix});
    };
    add(adasum::detail::choose_schedule(size, what));
    if (leaves) {
      add_by_node(adasum::detail::choices(nodes), carried::shard);
      add_by_node(adasum::detail::ways_of_doubling(nodes), carried::whole);
      add_by_node(adasum::detail::choices(nodes), carried::whole_by_leader);
    } else {
      for (const auto& one : adasum::detail::choices(size)) add(one);
    }
  }

  double ratio(std::size_t i, const machine& on) const {
    double least = seconds(all[i], on);
    for (const auto& other : all) least = std::min(least, seconds(other, on));
    return seconds(all[i], on) / least;
  }
  /// The candidate whose largest ratio on any of the networks is least.
  std::size_t least_regret() const {
    const auto largest = [&](std::size_t i) {
      double found = 0;
      for (const auto& one : networks) found = std::max(found, ratio(i, one.on()));
      return found;
    };
    std::size_t best = 0;
    for (std::size_t i = 1; i < all.size(); ++i)
      if (largest(i) < largest(best)) best = i;
    return best;
  }
};

/// Over all cases.
struct ratios {
  double logarithms = 0, largest = 1;
  std::size_t count = 0;

  void add(double ratio) {
    logarithms += std::log(ratio);
    largest = std::max(largest, ratio);
    ++count;
  }
  double mean() const { return std::exp(logarithms / static_cast<double>(count)); }
};

}  // namespace

int main() {
  ratios of_default[std::size(networks)], of_least_regret[std::size(networks)];
  constexpr int shapes[][2] = {{2, 1},   {3, 1}, {4, 1}, {7, 1}, {8, 1},  {16, 1}, {64, 1},
                               {256, 1}, {2, 2}, {4, 2}, {4, 4}, {16, 4}, {16, 8}, {64, 8}};
  for (const auto& [nodes, ranks_of_node] : shapes)
    for (std::size_t length = 64; length <= std::size_t{4} << 20; length *= 4)
      for (const std::size_t segments : {1, 64}) {
        const candidates some(nodes, ranks_of_node, length, segments);
        const auto compromise = some.least_regret();
        for (std::size_t k = 0; k < std::size(networks); ++k) {
          of_default[k].add(some.ratio(some.chosen, networks[k].on()));
          of_least_regret[k].add(some.ratio(compromise, networks[k].on()));
        }
      }
  std::printf("| network | the default: mean | worst | least regret: mean | worst |\n|---|---|---|---|---|\n");
  for (std::size_t k = 0; k < std::size(networks); ++k)
    std::printf("| %s, %g Gb/s, %g µs | %.2f | %.2f | %.2f | %.2f |\n", networks[k].name, networks[k].gigabits,
                networks[k].microseconds, of_default[k].mean(), of_default[k].largest, of_least_regret[k].mean(),
                of_least_regret[k].largest);
  std::printf("\n%zu cases\n", of_default[0].count);
}
