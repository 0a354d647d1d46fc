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
/// it. More than eight ranks of a node combine by levels, those that cost least.
struct automatic {
  static constexpr std::string_view name = "automatic";
  static constexpr bool supports_gram_rules = true;

  /// Whether a plan may work in memory that the ranks share. If not, it always sends messages.
  bool in_place = true;
  /// Whether the tree, and the choice, follow the nodes. If not, they depend on the number of ranks alone, and messages are
  /// sent whether ranks share memory or not, so that a run can be repeated to the last bit with another placement.
  bool follows_nodes = true;
  /// The constants by which schedules are compared. They can be measured, and kept in a file: docs/tuning.md.
  std::optional<machine> on{};
  friend constexpr bool operator==(const automatic&, const automatic&) = default;

  /// @cond internal
  // ── how it chooses ──

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

  /// In memory that all ranks share, more ranks than take one stage in any case: the radix that costs least in plan.buffer().
  /// (A gradient that lies elsewhere takes the same levels, so that its result has the same bits.)
  static shared_memory levels_in_place(int size, const schedule_input& input, const std::optional<machine>& on = {}) {
    constexpr shared_memory usual;
    if (!input.along_tree || shared_memory::is_short(size, input) || static_cast<std::size_t>(size) <= usual.radix)
      return usual;
    const machine node = on.value_or(machine{});
    return {cheapest_radix(radices(size), [&](std::size_t radix) {
      return seconds(in_place_cost(size, input, shared_memory{radix}).in_buffer(), node);
    })};
  }

  /// @endcond

  /// Copying a gradient to shared memory and back is less work than messages, whose bytes are copied too. But making
  /// that memory takes longer than one reduction, so a single call sends messages. In plan.buffer() nothing is copied.
  /// On several nodes, the ranks of each can work in place in plan.buffer().
  shared_memory_use uses_shared_memory(int size, const schedule_input& input) const {
    if (!in_place || !follows_nodes) return shared_memory_use::none;
    if (const auto chosen = choose(size, as_followed(input), on); chosen.by_node)
      return chosen.by_node == carried::shard ? shared_memory_use::buffer : shared_memory_use::none;
    return !input.once && pays_in_place(size, input, on) ? shared_memory_use::preferred
                                                         : shared_memory_use::buffer_if_all;
  }

  /// @cond internal
  /// Gradients of at most this many bytes are exchanged whole. The model is asked for the radix only, as for one segment: its
  /// answer depends on the number of segments, and schedules of short gradients cost so nearly the same that a rank whose
  /// segments are wrong would often choose another schedule than the other ranks.
  static constexpr std::size_t short_vector_bytes = 1024;
  /// The same for two ranks, unless they are known to be on two nodes, and those of more bytes are halved: measured on one
  /// node (bench/allreduce), where, below the limit, the exchanges that halving needs for its sums and for gathering cost more
  /// than the bytes that it saves.
  static constexpr std::size_t short_vector_bytes_of_two = std::size_t{8} << 10;
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
    std::size_t radix_inside = detail::one_level;          ///< of levels inside a node, where `by_node` is there
    friend constexpr bool operator==(const choice&, const choice&) = default;
  };

  static choice choose(int size, const schedule_input& input, const std::optional<machine>& on = {}) {
    if (is_by_node(input)) return cheapest_by_node(size, input, on);
    if (input.in_place) return {kind::shared_memory, levels_in_place(size, input, on).radix};
    if (!input.along_tree) return input.sums > 0 && size > 2 ? cheapest(size, input, on) : choice{kind::all_to_all};
    if (size == 1) return {kind::doubling};
    if (is_short(size, input, on)) return cheapest_doubling(size, input, on);
    return is_measured_pair(size, input, on) ? choice{kind::halving} : cheapest(size, input, on);
  }
  /// Whether it is exchanged whole in any case. On a machine that was measured, only where some part of it would be empty.
  static bool is_short(int size, const schedule_input& input, const std::optional<machine>& on) {
    return on ? input.length < static_cast<std::size_t>(size)
              : input.length * input.element_size <=
                    (is_measured_pair(size, input, on) ? short_vector_bytes_of_two : short_vector_bytes);
  }

  /// The schedule with the least seconds() by the model of cost.hpp; without a machine, on that of docs/scale.md. Every
  /// rank computes it for rank 0, which is among the busiest: where ranks are folded, it first waits for another one's
  /// gradient.
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
  ///
  /// The model is asked for a rank of the largest node. What is done inside nodes costs the same whatever is done across.
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
    const auto shards_inside = radix_inside(leaves, carried::shard, input, on),
               whole_inside = radix_inside(leaves, carried::whole, input, on);
    for (auto& one : candidates) one.radix_inside = *one.by_node == carried::shard ? shards_inside : whole_inside;
    const int rank = leaves.groups().ranks(leaves.groups().largest()).front();
    return first_least(candidates, [&](const choice& one) {
      return seconds_by_node(by_node_stages_of(one, leaves, rank, input), leaves, rank, input, on);
    });
  }

  /// The radix of levels inside nodes that costs least, where some node has more ranks than take one stage in any case.
  static std::size_t radix_inside(const node_leaves& leaves, carried each, const schedule_input& input,
                                  const std::optional<machine>& on = {}) {
    const auto mates = leaves.groups().ranks(leaves.groups().largest());
    constexpr auto usual = shared_memory{}.radix;
    if (mates.size() <= usual) return detail::one_level;
    const auto seconds_of = [&](std::size_t radix) {
      const auto inside = stages_by_node(leaves, mates.front(), input, {.each = each, .radix = radix},
                                         [](int, int, const schedule_input&) { return std::vector<stage>(); });
      return seconds_by_node(inside, leaves, mates.front(), input, on);
    };
    auto candidates = radices(static_cast<int>(mates.size()));
    if (each == carried::whole)
      std::erase_if(candidates, [](std::size_t radix) { return radix > widest_radix_of_doubling; });
    return cheapest_radix(candidates, seconds_of);
  }

  /// Of the stages of one rank: by messages; in place, those inside its node in memory that its ranks share.
  static double seconds_by_node(const std::vector<stage>& stages, const node_leaves& leaves, int rank,
                                const schedule_input& input, const std::optional<machine>& given) {
    const machine on = given.value_or(machine{});
    const auto node_of = [&](int one) { return input.nodes[static_cast<std::size_t>(one)]; };
    const auto is_across = [&](const stage& one) {
      return node_of(one.members.front()) != node_of(one.members.back());
    };
    const auto first_across = input.in_place ? std::ranges::find_if(stages, is_across) : stages.begin();
    const std::vector<stage> in_memory(stages.begin(), first_across), sent(first_across, stages.end());
    auto messages = cost_counter(sent, rank, static_cast<int>(input.nodes.size()), input, on).total();
    messages.ranks_on_link = leaves.groups().smallest();  // which carry something across
    return seconds(messages, on) +
           (in_memory.empty() ? 0 : seconds(in_place_cost(in_memory, rank, input).in_buffer(), on));
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

  /// @endcond

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
  /// Asks for each once: the model takes long where there are many ranks.
  template <class Candidate, class SecondsOf>
  static Candidate first_least(const std::vector<Candidate>& candidates, const SecondsOf& seconds_of) {
    std::vector<double> times(candidates.size());
    std::ranges::transform(candidates, times.begin(), seconds_of);
    return candidates[static_cast<std::size_t>(std::ranges::min_element(times) - times.begin())];
  }

  /// The radix of levels in memory that ranks share: of those that cost the same, the usual one, or else the first.
  template <class SecondsOf>
  static std::size_t cheapest_radix(std::vector<std::size_t> candidates, const SecondsOf& seconds_of) {
    candidates.insert(candidates.begin(), shared_memory{}.radix);
    return first_least(candidates, seconds_of);
  }
  static bool is_measured_pair(int size, const schedule_input& input, const std::optional<machine>& on) {
    return size == 2 && !on && !input.apart;
  }
  static bool is_by_node(const schedule_input& input) { return input.along_tree && !input.nodes.empty(); }

  schedule_input as_followed(schedule_input input) const {
    if (follows_nodes) return input;
    input.nodes = {};
    input.apart = false;
    return input;
  }

  static void append_sliced(std::vector<choice>& candidates, int size, bool halved) {
    if (halved && size > 1)
      for (const auto& one : ways_of_halving(size)) candidates.push_back(one);
    if (size <= most_ranks_all_to_all) candidates.push_back({kind::all_to_all});
  }

  static std::vector<stage> by_node_stages_of(const choice& one, const node_leaves& leaves, int rank,
                                              const schedule_input& input) {
    return stages_by_node(leaves, rank, input, {.each = *one.by_node, .radix = one.radix_inside},
                          [&](int node, int nodes, const schedule_input& among_nodes) {
                            return stages_of({one.which, one.radix, {}, one.most_parts}, node, nodes, among_nodes);
                          });
  }

  /// @param stages  stages(choice): those of rank 0
  template <class Stages>
  static choice cheapest_of(const std::vector<choice>& candidates, int size, const schedule_input& input,
                            const std::optional<machine>& given, const Stages& stages) {
    const machine on = given.value_or(machine{});
    return first_least(candidates, [&](const choice& one) {
      return seconds(cost_counter(stages(one), 0, size, input, on).total(), on);
    });
  }
};

}  // namespace adasum::schedules
