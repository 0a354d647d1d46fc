// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//     mpirun -n 4 adasum_bench_tune [--check] [--write FILE] [largest number of floats] [seconds for each number]
//
// Measures the machine, prints its constants as the text of a file, and what schedules::automatic chooses with them for each
// number of floats, in a plan on the caller's gradient. --check also times every schedule, in turns as contenders.hpp says:
// medians of this run, and what is chosen over the best. scripts/tune builds and runs it.

#include <mpi.h>

#include <adasum/machine_file.hpp>
#include <adasum/measure_machine.hpp>
#include <adasum/mpi.hpp>
#include <adasum/schedules/cheapest.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "choice_names.hpp"
#include "contenders.hpp"

namespace {

using namespace adasum::schedules;

struct arguments {
  bool checks = false;
  std::string file;
  std::size_t largest = default_largest;
  double seconds = 1;

  arguments(int argc, char** argv) {
    int numbers = 0;
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      if (word == "--check")
        checks = true;
      else if (word == "--write" && i + 1 < argc)
        file = argv[++i];
      else if (numbers++ == 0)
        largest = std::strtoull(argv[i], nullptr, 10);
      else
        seconds = std::strtod(argv[i], nullptr);
    }
  }
};

/// One thing that automatic may choose, in any case.
struct always {
  static constexpr std::string_view name = "always";
  static constexpr bool supports_gram_rules = true;
  adasum::detail::choice one;
  friend bool operator==(const always&, const always&) = default;
  std::vector<adasum::stage> stages(int rank, int size, const adasum::schedule_input& input) const {
    return one.stages(rank, size, input);
  }
  std::vector<int> leaf_ranks(int, const adasum::schedule_input& input) const {
    return one.by_node ? adasum::node_leaves(adasum::node_groups(input.nodes)).ranks() : std::vector<int>();
  }
};

constexpr auto in_shared_memory = "shared_memory";

/// The ranks, and what schedules are told of them.
struct ranks {
  adasum::mpi_communicator comm{MPI_COMM_WORLD};
  std::size_t nodes = adasum::node_groups(comm.nodes()).size();
  bool has_nodes = nodes > 1 && nodes < comm.nodes().size(), all_share = nodes == 1;

  adasum::schedule_input input(std::size_t length) const {
    adasum::schedule_input what{.length = length, .element_size = sizeof(float)};
    if (has_nodes) what.nodes = comm.nodes();
    what.apart = nodes == comm.nodes().size();
    return what;
  }
  std::string chosen(const automatic& order, std::size_t length) const {
    const auto what = input(length);
    if (all_share && order.uses_shared_memory(comm.size(), what) == adasum::shared_memory_use::preferred)
      return in_shared_memory;
    return name_of(adasum::detail::choose_schedule(comm.size(), what, order.on));
  }
};

/// Inside nodes, what is chosen on the machine that was measured, and without one.
std::vector<adasum::detail::choice> choices(const ranks& world, std::size_t length, const automatic& order) {
  using kind = adasum::detail::choice::kind;
  std::vector<adasum::detail::choice> all;
  const auto append = [&](int size, std::optional<carried> by_node,
                          std::size_t radix_inside = adasum::detail::one_level) {
    auto some = adasum::detail::ways_of_doubling(size);
    if (by_node != carried::whole && size > 1) {
      for (const auto& one : adasum::detail::ways_of_halving(size)) some.push_back(one);
      if (size > 2) some.push_back({kind::all_to_all});
    }
    for (auto& one : some) {
      one.by_node = by_node;
      one.radix_inside = radix_inside;
      all.push_back(one);
    }
  };
  append(world.comm.size(), {});
  if (!world.has_nodes) return all;
  const auto what = world.input(length);
  const adasum::node_leaves leaves{adasum::node_groups(what.nodes)};
  for (const auto each : {carried::shard, carried::whole, carried::whole_by_leader}) {
    const auto measured = adasum::detail::radix_inside(leaves, each, what, order.on),
               usual = adasum::detail::radix_inside(leaves, each, what);
    append(static_cast<int>(world.nodes), each, measured);
    if (usual != measured) append(static_cast<int>(world.nodes), each, usual);
  }
  return all;
}

std::vector<contender> contenders(const ranks& world, std::size_t length, const automatic& order) {
  constexpr adasum::options unchecked{.check_agreement = false};
  const auto add = [&](std::vector<contender>& all, const std::string& name, const auto& schedule) {
    all.push_back(planned(name, length, [&] {
      return adasum::plan_allreduce<float>(adasum::serial_space{}, world.comm, adasum::segments::whole(length),
                                           schedule, unchecked);
    }));
  };
  std::vector<contender> all{sum_on("MPI_Allreduce", MPI_COMM_WORLD)};
  for (const auto& one : choices(world, length, order)) add(all, name_of(one), always{one});
  if (world.all_share) add(all, in_shared_memory, shared_memory{});
  return all;
}

double median(std::vector<double> all) {
  std::ranges::nth_element(all, all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2));
  return all[all.size() / 2];
}

/// What is chosen, its median time over the least, and the same of the default without a machine.
void print_check(const ranks& world, std::vector<contender>& all, std::size_t length, const automatic& order,
                 double seconds) {
  run_rounds(all, length, world.comm.rank(), seconds);
  if (world.comm.rank() != 0) return;
  const auto time_of = [&](const std::string& name) {
    return median(std::ranges::find(all, name, &contender::name)->seconds);
  };
  std::string best = all[1].name;
  for (const auto& one : all)
    if (one.name != all[0].name && time_of(one.name) < time_of(best)) best = one.name;
  const double least = time_of(best);
  const auto before = world.chosen(automatic{}, length), now = world.chosen(order, length);
  std::printf("| %zu | %.1f, %s | %.2f, %s | %.2f, %s | %.2f |\n", length, least * 1e6, best.c_str(),
              time_of(now) / least, now.c_str(), time_of(before) / least, before.c_str(), time_of(all[0].name) / least);
  std::fflush(stdout);
}

void tune(const arguments& wanted) {
  const ranks world;
  const bool root = world.comm.rank() == 0;
  warm_up(0.2);
  const double start = MPI_Wtime();
  const automatic order{.on = adasum::measure_machine(adasum::serial_space{}, world.comm)};
  const double took = MPI_Wtime() - start;
  if (root) {
    std::printf("%s# %d ranks on %zu nodes, measured in %.2f s\n\n", adasum::machine_text(*order.on).c_str(),
                world.comm.size(), world.nodes, took);
    if (!wanted.file.empty()) adasum::write_machine(*order.on, wanted.file);
    std::printf(wanted.checks
                    ? "| floats | best, µs | chosen, over best | default, over best | MPI_Allreduce, over best |\n"
                      "|---|---|---|---|---|\n"
                    : "| floats | chosen | default |\n|---|---|---|\n");
  }
  for (auto length = smallest; length <= wanted.largest; length *= growth) {
    if (wanted.checks) {
      auto all = contenders(world, length, order);
      print_check(world, all, length, order, wanted.seconds);
    } else if (root) {
      std::printf("| %zu | %s | %s |\n", length, world.chosen(order, length).c_str(),
                  world.chosen(automatic{}, length).c_str());
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  try {
    tune(arguments(argc, argv));
  } catch (const adasum::error& problem) {
    std::fprintf(stderr, "%s\n", problem.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
}
