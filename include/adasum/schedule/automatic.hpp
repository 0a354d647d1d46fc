// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../core/error.hpp"
#include "../core/node_groups.hpp"
#include "../core/stage.hpp"
#include "all_to_all.hpp"
#include "by_node.hpp"
#include "cost.hpp"
#include "in_place_cost.hpp"
#include "levels.hpp"
#include "machine.hpp"
#include "recursive_doubling.hpp"
#include "recursive_halving.hpp"
#include "shared_memory.hpp"

namespace adasum::schedules {

/// Chooses a schedule by the gradient's length, the number of ranks, and their nodes. This is the only place where a choice
/// is made.
///
/// Where ranks are on several nodes, and a node has several of them (schedule_input::nodes), a rule that is applied along
/// a tree combines the gradients of each node first, and then those of the nodes: the tree of node_groups.hpp, whatever the
/// length. With R ranks on each node, each of them carries 1/R of the node's combination across, or, if it is short, all of
/// it.
struct automatic {
  static constexpr std::string_view name = "automatic";
  static constexpr bool supports_gram_rules = true;

  /// Whether a plan may work in memory that the ranks share. If not, it always sends messages.
  bool in_place = true;
  /// Whether the tree follows the nodes. If not, it depends on the number of ranks alone, so that a run can be repeated to
  /// the last bit with another placement.
  bool follows_nodes = true;
  /// The constants by which schedules are compared. They can be measured, and kept in a file: docs/tuning.md.
  std::optional<machine> on{};
  friend constexpr bool operator==(const automatic&, const automatic&) = default;

  /// Whether copying a gradient to memory that all ranks share, reducing it there and copying it back pays. Up to so many
  /// ranks, as measured: where the Gram matrices of all ranks are not larger than the gradients. Beyond, and on a machine that
  /// was measured, by the model: messages between ranks of one node against in_place_cost.
  static constexpr int most_ranks_measured = 16;
  static bool pays_in_place(int size, const schedule_input& input, const std::optional<machine>& on = {}) {
    if (size < 2) return false;
    const auto ranks = static_cast<std::size_t>(size);
    if (!on && size <= most_ranks_measured)
      return shared_memory::is_short(size, input) ||
             input.segments * packed_size(ranks) * sizeof(double) * ranks <= input.length * input.element_size;
    auto node = on.value_or(machine{});
    if (!on) node.across = node.inside;  // all ranks are on one
    const auto messages = stages_of(choose(size, input, on), 0, size, input);
    return seconds(in_place_cost(size, input, levels_in_place(size, input, on)), node) <=
           seconds(cost_counter(messages, 0, size, input, node).total(), node);
  }

  /// In memory that all ranks share, more ranks than take one stage in any case: the radix that costs least.
  static shared_memory levels_in_place(int size, const schedule_input& input, const std::optional<machine>& on = {}) {
    constexpr shared_memory usual;
    if (!input.along_tree || shared_memory::is_short(size, input) || static_cast<std::size_t>(size) <= usual.radix)
      return usual;
    const machine node = on.value_or(machine{});
    shared_memory best;
    double least = seconds(in_place_cost(size, input, best), node);
    for (const auto radix : radices(size)) {
      const shared_memory one{radix};
      const double time = seconds(in_place_cost(size, input, one), node);
      if (time < least) best = one;
      least = std::min(least, time);
    }
    return best;
  }

  /// Copying a gradient to shared memory and back is less work than messages, whose bytes are copied too. But making
  /// that memory takes longer than one reduction, so a single call sends messages. In plan.buffer() nothing is copied.
  /// On several nodes, the ranks of each can work in place in plan.buffer().
  shared_memory_use uses_shared_memory(int size, const schedule_input& input) const {
    if (!in_place) return shared_memory_use::none;
    if (const auto chosen = choose(size, as_followed(input), on); chosen.by_node)
      return chosen.by_node == carried::shard ? shared_memory_use::buffer : shared_memory_use::none;
    return !input.once && pays_in_place(size, input, on) ? shared_memory_use::preferred
                                                         : shared_memory_use::buffer_if_all;
  }

  /// Gradients of at most this many bytes are exchanged whole. The limit for two ranks was measured on one node
  /// (bench/allreduce): below it, the exchanges that halving needs for its sums and for gathering cost more than the bytes
  /// that it saves. For more ranks the model is asked for the radix only, as for one segment: its answer depends on the
  /// number of segments, and schedules of short gradients cost so nearly the same that a rank whose segments are wrong would
  /// often choose another schedule than the other ranks.
  static constexpr std::size_t short_vector_bytes(int size) { return (size <= 2 ? 8 : 1) * 1024; }
  /// What more than two ranks choose from, besides doubling.
  static constexpr std::size_t widest_radix = 32;
  static constexpr std::size_t widest_radix_of_doubling = 8;
  static constexpr std::size_t widest_prime_radix = 128;  ///< see radices()
  static constexpr int most_ranks_all_to_all = 256;       ///< the Gram matrix of more is a message of megabytes

  enum class kind { doubling, halving, all_to_all, shared_memory };
  struct choice {
    kind which;                                            ///< across the nodes, where `by_node` is there
    std::size_t radix = 2;                                 ///< of doubling, halving, and levels in shared memory
    std::optional<carried> by_node{};                      ///< nodes first, which then carry this
    std::size_t most_parts = detail::any_number_of_parts;  ///< of halving
    friend constexpr bool operator==(const choice&, const choice&) = default;
  };

  static choice choose(int size, const schedule_input& input, const std::optional<machine>& on = {}) {
    if (is_by_node(input)) return cheapest_by_node(size, input, on);
    if (input.in_place) return {kind::shared_memory, levels_in_place(size, input, on).radix};
    if (!input.along_tree) return input.sums > 0 && size > 2 ? cheapest(size, input, on) : choice{kind::all_to_all};
    if (size == 1) return {kind::doubling};
    if (is_short(size, input, on)) return cheapest_doubling(size, input, on);
    return size == 2 && !on ? choice{kind::halving} : cheapest(size, input, on);
  }
  /// Whether it is exchanged whole in any case. On a machine that was measured, only where some part of it would be empty.
  static bool is_short(int size, const schedule_input& input, const std::optional<machine>& on) {
    return on ? input.length < static_cast<std::size_t>(size)
              : input.length * input.element_size <= short_vector_bytes(size);
  }

  /// The schedule with the least seconds() by the model of cost.hpp; without a machine, on that of docs/scale.md. Every rank computes
  /// it for rank 0, which is among the busiest: where ranks are folded, it first waits for another one's gradient.
  ///
  /// Where the same stages have two names, as all_to_all and halving among 3 ranks, the choice is the first of doubling,
  /// halving and all_to_all.
  ///
  /// For a rule of norms and row sums (schedule_input::sums), that compares one stage of all ranks, which sends 2N(P-1)/P
  /// elements but needs P²/2 inner products of N/P elements on each rank and a sum of as many numbers, with two sums of
  /// vectors, which send twice as much (norms alone: as much) and need 3N products.
  static choice cheapest(int size, const schedule_input& input, const std::optional<machine>& on = {}) {
    // The model asks rank 0, whose parts of short gradients among many ranks are empty.
    auto candidates = ways_of_doubling(size);
    append_sliced(candidates, size, !is_short(size, input, on));
    // One stage of all ranks is all_to_all for a rule that is not applied along the tree.
    if (!input.along_tree)
      std::erase_if(candidates, [&](const choice& one) {
        return one.which != kind::all_to_all && is_one_stage_of_all(stages_of(one, 0, size, input), size);
      });
    return cheapest_of(candidates, size, input, on, [&](const choice& one) { return stages_of(one, 0, size, input); });
  }

  /// Of exchanging whole gradients. Whatever the radix, each rank gets as much of what the report needs.
  static choice cheapest_doubling(int size, schedule_input input, const std::optional<machine>& on = {}) {
    input.segments = 1;
    return cheapest_of(ways_of_doubling(size), size, input, on,
                       [&](const choice& one) { return stages_of(one, 0, size, input); });
  }

  /// The schedule with the least seconds where nodes are combined first. In place, every rank has a part of its own.
  static choice cheapest_by_node(int size, schedule_input input, const std::optional<machine>& on = {}) {
    const node_leaves leaves{node_groups(input.nodes)};
    const auto nodes = static_cast<int>(leaves.groups().size());
    const bool goes_whole = !input.in_place && is_short(size, input, on);
    std::vector<choice> candidates;
    if (goes_whole) {
      input.segments = 1;  // as in cheapest_doubling
    } else {
      candidates = ways_of_doubling(nodes);
      append_sliced(candidates, nodes, true);
    }
    for (auto& one : candidates) one.by_node = carried::shard;
    if (!input.in_place)
      for (const auto& one : ways_of_doubling(nodes)) candidates.push_back({one.which, one.radix, carried::whole});
    return cheapest_of(candidates, size, input, on,
                       [&](const choice& one) { return by_node_stages_of(one, leaves, 0, input); });
  }

  /// The radices of halving that make different levels of so many ranks (levels.hpp): up to widest_radix, and those that
  /// keep a larger prime factor from being folded. Wider than widest_prime_radix, folding costs less.
  static std::vector<std::size_t> radices(int size) {
    const auto levels = [&](std::size_t radix) { return detail::levels_of(static_cast<std::size_t>(size), radix); };
    std::vector<std::size_t> found{2};
    for (std::size_t radix = 3; radix <= widest_radix; ++radix)
      if (levels(radix) != levels(found.back())) found.push_back(radix);
    for (const auto& one : levels(widest_radix))
      if (one.folds && one.radix <= widest_prime_radix && one.radix > found.back()) found.push_back(one.radix);
    return found;
  }

  /// Doubling with each of these radices that is not too wide for its memory, of (radix - 1)·N elements.
  static std::vector<choice> ways_of_doubling(int size) {
    std::vector<choice> found{{kind::doubling}};
    for (const auto radix : radices(size))
      if (radix > 2 && radix <= widest_radix_of_doubling) found.push_back({kind::doubling, radix});
    return found;
  }
  /// Halving with each of these radices: to the end, and up to each level.
  static std::vector<choice> ways_of_halving(int size) {
    std::vector<choice> found;
    for (const auto radix : radices(size)) {
      found.push_back({kind::halving, radix});
      std::size_t parts = 1;
      for (const auto& one : detail::levels_of(static_cast<std::size_t>(size), radix)) {
        if (parts > 1) found.push_back({kind::halving, radix, {}, parts});
        parts *= one.radix;
      }
    }
    return found;
  }

  static std::vector<stage> stages_of(choice one, int rank, int size, const schedule_input& input) {
    if (one.by_node) return by_node_stages_of(one, node_leaves(node_groups(input.nodes)), rank, input);
    switch (one.which) {
      case kind::shared_memory: return shared_memory{one.radix}.stages(rank, size, input);
      case kind::all_to_all: return all_to_all{}.stages(rank, size, input);
      case kind::halving: return recursive_halving{one.radix, one.most_parts}.stages(rank, size, input);
      case kind::doubling: break;
    }
    return recursive_doubling{one.radix}.stages(rank, size, input);
  }

  /// @throws bad_input  a constant of the machine is negative or not finite
  std::vector<stage> stages(int rank, int size, const schedule_input& input) const {
    if (const auto bad = on ? bad_constant_of(*on) : std::string(); !bad.empty())
      throw bad_input("adasum::schedules::automatic: the machine's " + bad + " is negative or not finite");
    return stages_of(choose(size, as_followed(input.of_whole()), on), rank, size, input);
  }

  /// See the concept schedule.
  std::vector<double> parameters() const {
    std::vector<double> all{in_place ? 1. : 0., follows_nodes ? 1. : 0.};
    if (on) std::ranges::copy(constants_of(*on), std::back_inserter(all));
    return all;
  }

  /// The schedule that runs.
  std::string_view chosen_name(int size, const schedule_input& input) const {
    const auto chosen = choose(size, as_followed(input), on);
    if (chosen.by_node) return "hierarchical";
    switch (chosen.which) {
      case kind::shared_memory: return shared_memory::name;
      case kind::all_to_all: return all_to_all::name;
      case kind::halving: return recursive_halving::name;
      case kind::doubling: break;
    }
    return recursive_doubling::name;
  }

  /// Which rank's gradient is which leaf: node by node.
  std::vector<int> leaf_ranks(int, const schedule_input& input) const {
    const auto known = as_followed(input);
    return is_by_node(known) ? node_leaves(node_groups(known.nodes)).ranks() : std::vector<int>();
  }

 private:
  static bool is_by_node(const schedule_input& input) { return input.along_tree && !input.nodes.empty(); }

  schedule_input as_followed(schedule_input input) const {
    if (!follows_nodes) input.nodes = {};
    return input;
  }

  static void append_sliced(std::vector<choice>& candidates, int size, bool halved) {
    if (halved && size > 1)
      for (const auto& one : ways_of_halving(size)) candidates.push_back(one);
    if (size <= most_ranks_all_to_all) candidates.push_back({kind::all_to_all});
  }

  static std::vector<stage> by_node_stages_of(const choice& one, const node_leaves& leaves, int rank,
                                              const schedule_input& input) {
    return stages_by_node(leaves, rank, input, {.each = *one.by_node},
                          [&](int node, int nodes, const schedule_input& among_nodes) {
                            return stages_of({one.which, one.radix, {}, one.most_parts}, node, nodes, among_nodes);
                          });
  }

  /// @param stages  stages(choice): those of rank 0
  template <class Stages>
  static choice cheapest_of(const std::vector<choice>& candidates, int size, const schedule_input& input,
                            const std::optional<machine>& given, const Stages& stages) {
    const machine on = given.value_or(machine{});
    return *std::ranges::min_element(candidates, {}, [&](const choice& one) {
      return seconds(cost_counter(stages(one), 0, size, input, on).total(), on);
    });
  }
};

}  // namespace adasum::schedules
