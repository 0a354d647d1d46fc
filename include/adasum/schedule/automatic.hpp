// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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

  /// @throws bad_input  a constant of the machine is negative or not finite
  std::vector<stage> stages(int rank, int size, const schedule_input& input) const {
    if (const auto bad = on ? bad_constant_of(*on) : std::string(); !bad.empty())
      throw bad_input("adasum::schedules::automatic: the machine's " + bad + " is negative or not finite");
    return stages_of(choose(size, as_followed(input.of_whole()), on), rank, size, input);
  }

  /// See the concept schedule.
  std::vector<double> parameters() const {
    std::vector<double> all{in_place ? 1. : 0., follows_nodes ? 1. : 0.};
    if (!on) return all;
    for (const double one : constants_of(*on)) all.push_back(one);
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

  /// @cond internal
  // ── how it chooses ──

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
  static constexpr int most_ranks_measured = 16;          ///< see pays_in_place()

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

  /// Whether copying a gradient to memory that all ranks share, reducing it there and copying it back pays. Up to
  /// most_ranks_measured, as measured: where the Gram matrices of all ranks are not larger than the gradients. Beyond, and on a
  /// machine that was measured, by the model: messages between ranks of one node against in_place_cost.
  static bool pays_in_place(int size, const schedule_input& input, const std::optional<machine>& on = {}) {
    if (size < 2) return false;
    const auto ranks = static_cast<std::size_t>(size);
    if (!on && size <= most_ranks_measured)
      return shared_memory::is_short(size, input) ||
             input.segments * packed_size(ranks) * sizeof(double) * ranks <= input.length * input.element_size;
    auto node = machine_of(on);
    if (!on) node.across = node.inside;  // all ranks are on one
    const auto messages = stages_of(choose(size, input, on), 0, size, input);
    return seconds(in_place_cost(size, input, levels_in_place(size, input, on)), node) <=
           seconds(cost_of(messages, 0, size, input, node), node);
  }

  /// In memory that all ranks share, more ranks than take one stage in any case: the radix that costs least in plan.buffer().
  /// (A gradient that lies elsewhere takes the same levels, so that its result has the same bits.) Of those that cost the
  /// same, the usual one, or else the first.
  static shared_memory levels_in_place(int size, const schedule_input& input, const std::optional<machine>& on = {}) {
    constexpr shared_memory usual;
    if (!input.along_tree || shared_memory::is_short(size, input) || static_cast<std::size_t>(size) <= usual.radix)
      return usual;
    std::vector<choice> all{{kind::shared_memory, usual.radix}};
    for (const auto radix : radices(size)) all.push_back({kind::shared_memory, radix});
    return {first_least(all, size, input, machine_of(on)).radix};
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
    return first_least(candidates(size, !is_short(size, input, on)), size, input, machine_of(on));
  }

  /// Of exchanging whole gradients. Whatever the radix, each rank gets as much of what the report needs.
  static choice cheapest_doubling(int size, schedule_input input, const std::optional<machine>& on = {}) {
    input.segments = 1;
    return first_least(ways_of_doubling(size), size, input, machine_of(on));
  }

  /// The schedule with the least seconds where nodes are combined first. In place, every rank has a part of its own.
  ///
  /// The model is asked for a rank of the largest node. What is done inside nodes costs the same whatever is done across.
  static choice cheapest_by_node(int size, schedule_input input, const std::optional<machine>& on = {}) {
    const node_leaves leaves{node_groups(input.nodes)};
    const auto nodes = static_cast<int>(leaves.groups().size());
    std::vector<choice> all;
    const auto append = [&](const std::vector<choice>& across, carried each) {
      const auto radix = radix_inside(leaves, each, input, on);
      for (const auto& one : across) all.push_back({one.which, one.radix, each, one.most_parts, radix});
    };
    if (!input.in_place && is_short(size, input, on))
      input.segments = 1;  // as in cheapest_doubling
    else
      append(candidates(nodes, true), carried::shard);
    if (!input.in_place) append(ways_of_doubling(nodes), carried::whole);
    return first_least(all, size, input, machine_of(on), &leaves);
  }

  /// The radix of levels inside nodes that costs least, where some node has more ranks than take one stage in any case. Of
  /// those that cost the same, the usual one, or else the first.
  static std::size_t radix_inside(const node_leaves& leaves, carried each, const schedule_input& input,
                                  const std::optional<machine>& on = {}) {
    const auto mates = leaves.groups().ranks(leaves.groups().largest()).size();
    constexpr auto usual = shared_memory{}.radix;
    if (mates <= usual) return detail::one_level;
    std::vector<choice> all{inside_alone(each, usual)};
    for (const auto radix : radices(static_cast<int>(mates)))
      if (each == carried::shard || radix <= widest_radix_of_doubling) all.push_back(inside_alone(each, radix));
    return first_least(all, static_cast<int>(input.nodes.size()), input, machine_of(on), &leaves).radix_inside;
  }

  /// Of the stages of one rank: the first ones in memory that ranks share, the others by messages.
  /// @param ranks_on_link  see cost; 0: as many as the rank's node has
  static double seconds_of(std::span<const stage> stages, std::size_t in_memory, int rank, int size,
                           const schedule_input& input, const machine& on, std::size_t ranks_on_link = 0) {
    auto messages = cost_of(stages.subspan(in_memory), rank, size, input, on);
    if (ranks_on_link > 0) messages.ranks_on_link = ranks_on_link;
    const double sent = seconds(messages, on);
    return in_memory == 0 ? sent : sent + seconds(in_place_cost(stages.first(in_memory), rank, input).in_buffer(), on);
  }
  /// How many of the stages of a rank are inside its node, in memory that its ranks share.
  static std::size_t stages_in_memory(std::span<const stage> stages, const schedule_input& input) {
    const auto node_of = [&](int one) { return input.nodes[static_cast<std::size_t>(one)]; };
    std::size_t count = 0;
    while (input.in_place && count < stages.size() &&
           node_of(stages[count].members.front()) == node_of(stages[count].members.back()))
      ++count;
    return count;
  }

  /// The radices of halving that make different levels of so many ranks (levels.hpp): up to widest_radix, and those that
  /// keep a larger prime factor from being folded. Wider than widest_prime_radix, folding costs less.
  static std::vector<std::size_t> radices(int size) {
    std::vector<std::size_t> found;
    std::vector<detail::level> last;
    for (std::size_t radix = 2; radix <= widest_radix; ++radix) {
      auto levels = detail::levels_of(static_cast<std::size_t>(size), radix);
      if (radix > 2 && levels == last) continue;
      found.push_back(radix);
      last = std::move(levels);
    }
    for (const auto& one : last)
      if (one.folds && one.radix <= widest_prime_radix && one.radix > found.back()) found.push_back(one.radix);
    return found;
  }

  /// Doubling with each of these radices that is not too wide for its memory, of (radix - 1)·N elements.
  static std::vector<choice> ways_of_doubling(int size) {
    std::vector<choice> found;
    for (const auto radix : radices(size))
      if (radix <= widest_radix_of_doubling) found.push_back({kind::doubling, radix});
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

  static std::vector<stage> stages_of(const choice& one, int rank, int size, const schedule_input& input) {
    if (one.by_node) return by_node_stages_of(one, node_leaves(node_groups(input.nodes)), rank, input);
    switch (one.which) {
      case kind::shared_memory: return shared_memory{one.radix}.stages(rank, size, input);
      case kind::all_to_all: return all_to_all{}.stages(rank, size, input);
      case kind::halving: return detail::stages_by_levels(rank, size, input.length, one.radix, one.most_parts);
      case kind::doubling: break;
    }
    return detail::stages_by_levels(rank, size, input.length, one.radix, 1);
  }

  /// @endcond

 private:
  static constexpr machine usual_machine{};
  static const machine& machine_of(const std::optional<machine>& on) { return on ? *on : usual_machine; }

  /// Levels in a node, and nothing across.
  static choice inside_alone(carried each, std::size_t radix) {
    return {kind::shared_memory, 2, each, detail::any_number_of_parts, radix};
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

  /// @param sliced  whether halving is among them
  static std::vector<choice> candidates(int size, bool sliced) {
    auto found = ways_of_doubling(size);
    if (sliced && size > 1)
      for (const auto& one : ways_of_halving(size)) found.push_back(one);
    if (size <= most_ranks_all_to_all) found.push_back({kind::all_to_all});
    return found;
  }

  static std::vector<stage> by_node_stages_of(const choice& one, const node_leaves& leaves, int rank,
                                              const schedule_input& input) {
    const detail::rank_of_node me(leaves, rank, input, {.each = *one.by_node, .radix = one.radix_inside});
    auto stages = me.inside();
    if (me.goes_across() && one.which != kind::shared_memory)
      me.append_across(stages,
                       stages_of({one.which, one.radix, {}, one.most_parts}, me.node(), me.nodes(), me.among_nodes()));
    return stages;
  }

  /// The first of the candidates that takes the fewest seconds.
  /// @param leaves  where nodes are combined first
  static choice first_least(const std::vector<choice>& candidates, int size, const schedule_input& input,
                            const machine& on, const node_leaves* leaves = nullptr) {
    const int rank = leaves ? leaves->groups().ranks(leaves->groups().largest()).front() : 0;
    const auto ranks_on_link = leaves ? leaves->groups().smallest() : 0;  // those which carry something across
    const choice* best = nullptr;
    double least = 0;
    for (const auto& one : candidates) {
      const auto stages = leaves ? by_node_stages_of(one, *leaves, rank, input) : stages_of(one, rank, size, input);
      // One stage of all ranks is all_to_all for a rule that is not applied along the tree.
      if (!input.along_tree && one.which != kind::all_to_all && is_one_stage_of_all(stages, size)) continue;
      const auto in_memory = leaves                             ? stages_in_memory(stages, input)
                             : one.which == kind::shared_memory ? stages.size()
                                                                : 0;
      const double time = seconds_of(stages, in_memory, rank, size, input, on, ranks_on_link);
      if (best && !(time < least)) continue;
      best = &one;
      least = time;
    }
    return *best;
  }
};

}  // namespace adasum::schedules
