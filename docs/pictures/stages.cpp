// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prints, as JSON, what the pictures of schedules show: trees, and every rank's stages with what it sends. So these are drawn
// from the library's own functions; a test compares what is printed with data/stages.json.
#include <adasum/core/tree_order.hpp>
#include <adasum/schedules/all_to_all.hpp>
#include <adasum/schedules/automatic.hpp>
#include <adasum/schedules/recursive_doubling.hpp>
#include <adasum/schedules/recursive_halving.hpp>
#include <adasum/schedules/shard_grid.hpp>
#include <adasum/schedules/shared_memory.hpp>
#include <adasum/schedules/transfers.hpp>

#include <cstddef>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace {

using adasum::index_range;
using adasum::stage;
namespace schedules = adasum::schedules;

template <class Values, class Show>
std::string list(const Values& values, const Show& show) {
  std::string text;
  for (const auto& value : values) text += (text.empty() ? "" : ", ") + show(value);
  return "[" + text + "]";
}
std::string numbers(const auto& values) {
  return list(values, [](auto value) { return std::to_string(value); });
}

/// One picture of a schedule: a gradient is drawn as a few cells, each of so many elements that the schedule takes it for long.
struct picture {
  std::size_t ranks, cells;
  std::function<std::vector<stage>(int rank, std::size_t length)> stages;

  static constexpr std::size_t elements_of_cell = 1 << 20;
  std::size_t length() const { return cells * elements_of_cell; }
};

std::string cells_of(index_range range) {
  const auto cell = picture::elements_of_cell;
  return range.begin % cell == 0 && range.end % cell == 0 ? numbers(std::vector{range.begin / cell, range.end / cell})
                                                          : "\"not whole cells\"";
}

/// [to which rank, which cells] of each message with elements.
std::string sends(const stage& one, const adasum::detail::transfers& all) {
  std::vector<std::string> found;
  for (const auto& message : all.sends)
    if (!message.elements.empty())
      found.push_back(std::string(1, '[')
                          .append(std::to_string(one.members[message.member]))
                          .append(", ")
                          .append(cells_of(message.elements))
                          .append("]"));
  return list(found, [](const std::string& text) { return text; });
}

std::string shown(const stage& one, std::size_t leaves) {
  return "{\"members\": " + numbers(one.members) + ", \"survives\": " + (one.survives() ? "true" : "false") +
         ", \"held\": " + cells_of(one.held) + ", \"part\": " + cells_of(one.part()) +
         ", \"leaves\": " + numbers(std::vector{one.leaf_offsets.front(), one.leaf_offsets.back()}) +
         ", \"sum_over\": " + numbers(one.sum_over) +
         ",\n     \"brings\": " + sends(one, adasum::detail::transfers_to_combine(one)) +
         ", \"delivers\": " + sends(one, adasum::detail::transfers_to_deliver(one, leaves)) + "}";
}

void print_schedule(const char* name, const picture& drawn, const char* end = ",") {
  std::printf("  \"%s\": {\"cells\": %zu, \"ranks\": [", name, drawn.cells);
  for (std::size_t rank = 0; rank < drawn.ranks; ++rank) {
    const auto stages = drawn.stages(static_cast<int>(rank), drawn.length());
    std::printf("%s\n   [", rank == 0 ? "" : ",");
    for (std::size_t i = 0; i < stages.size(); ++i)
      std::printf("%s%s", i == 0 ? "" : ",\n    ", shown(stages[i], drawn.ranks).c_str());
    std::printf("]");
  }
  std::printf("]}%s\n", end);
}

adasum::schedule_input input_of(std::size_t length) { return {.length = length, .element_size = sizeof(float)}; }

picture of(auto schedule, std::size_t ranks, std::size_t cells) {
  return {ranks, cells, [=](int rank, std::size_t length) {
            return schedule.stages(rank, static_cast<int>(ranks), input_of(length));
          }};
}

/// 2 nodes of 3 ranks.
picture of_nodes() {
  return {6, 6, [](int rank, std::size_t length) {
            const std::vector<int> nodes{0, 0, 0, 1, 1, 1};
            auto input = input_of(length);
            input.nodes = nodes;
            return schedules::automatic{}.stages(rank, 6, input);
          }};
}

/// 2 replicas of 2 shards; the cells of a shard are counted from its own beginning.
picture of_shards() {
  return {4, 2, [](int rank, std::size_t length) {
            const std::vector<adasum::detail::shard_place> places{{0, 0}, {0, 1}, {1, 0}, {1, 1}};
            const adasum::detail::shard_grid grid(places, "stages");
            const auto [replica, index] = places[static_cast<std::size_t>(rank)];
            auto found = schedules::recursive_halving{}.stages(replica, 2, input_of(length));
            for (auto& one : found) one = grid.widen(std::move(one), index);
            return found;
          }};
}

void print_tree(std::size_t leaves, const char* end = ",") {
  std::vector<std::vector<std::size_t>> merges;
  adasum::for_each_merge(leaves, [&](std::size_t first, std::size_t middle, std::size_t last) {
    merges.push_back({first, middle, last});
  });
  std::printf("  \"%zu\": %s%s\n", leaves, list(merges, [](const auto& one) { return numbers(one); }).c_str(), end);
}

}  // namespace

int main() {
  std::printf("{\n \"trees\": {\n");
  for (const std::size_t leaves : {8, 5, 6}) print_tree(leaves);
  print_tree(9, "");
  std::printf(" },\n \"schedules\": {\n");
  print_schedule("recursive_halving", of(schedules::recursive_halving{}, 4, 4));
  print_schedule("recursive_doubling", of(schedules::recursive_doubling{}, 4, 4));
  print_schedule("all_to_all", of(schedules::all_to_all{}, 4, 4));
  print_schedule("halving_of_6", of(schedules::recursive_halving{}, 6, 6));
  print_schedule("shared_memory", of(schedules::shared_memory{}, 4, 4));
  print_schedule("shared_memory_by_levels", of(schedules::shared_memory{2}, 4, 4));
  print_schedule("nodes", of_nodes());
  print_schedule("shards", of_shards(), "");
  std::printf(" }\n}\n");
}
