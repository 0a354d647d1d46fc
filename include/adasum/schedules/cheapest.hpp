// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "../core/gram.hpp"
#include "../core/node_groups.hpp"
#include "../core/stage.hpp"
#include "choice.hpp"
#include "cost.hpp"
#include "machine.hpp"
#include "shared_memory.hpp"

/// How schedules::automatic chooses.
namespace adasum::detail {

using given_machine = std::optional<schedules::machine>;
inline constexpr schedules::machine usual_machine{};
/// Between nodes, where schedules are told of them: on networks from 1 to 400 Gb/s and from 1 to 50 µs, its fastest schedules are
/// near the fastest, on average (docs/scale.md, "Networks that it does not know").
inline constexpr schedules::machine usual_cluster{
    .across = {.latency = 2e-6, .per_message = 0.4e-6, .per_byte = 0.16e-9}};
/// The machine to choose for.
inline const schedules::machine& machine_of(const given_machine& on, const schedule_input& input) {
  if (on) return *on;
  return input.apart || !input.nodes.empty() ? usual_cluster : usual_machine;
}

/// Gradients of at most this many bytes are exchanged whole. The model is asked only for the radix and, on nodes of several
/// ranks, for who carries them across; and this as for one segment: its answer depends on the number of segments, and
/// schedules of short gradients cost so nearly the same that a rank whose segments are wrong would often choose another
/// schedule than the other ranks.
inline constexpr std::size_t short_vector_bytes = 1024;
/// The same for two ranks, unless they are known to be on two nodes, and those of more bytes are halved: measured on one
/// node (bench/allreduce), where, below the limit, the exchanges that halving needs for its sums and for gathering cost more
/// than the bytes that it saves.
inline constexpr std::size_t short_vector_bytes_of_two = std::size_t{8} << 10;
inline constexpr int most_ranks_measured = 16;  ///< see pays_in_place()

inline bool is_measured_pair(int size, const schedule_input& input, const given_machine& on) {
  return size == 2 && !on && !input.apart;
}
/// Whether it is exchanged whole in any case. On a machine that was measured, only where some part of it would be empty.
inline bool is_short(int size, const schedule_input& input, const given_machine& on) {
  return on ? input.length < static_cast<std::size_t>(size)
            : input.length * input.element_size <=
                  (is_measured_pair(size, input, on) ? short_vector_bytes_of_two : short_vector_bytes);
}

/// Of the stages of one rank: the first ones in memory that ranks share, the others by messages.
/// @param ranks_on_link  see cost; 0: as many as the rank's node has
inline double seconds_of(std::span<const stage> stages, std::size_t in_memory, int rank, int size,
                         const schedule_input& input, const schedules::machine& on, std::size_t ranks_on_link = 0) {
  auto messages = schedules::cost_of(stages.subspan(in_memory), rank, size, input, on);
  if (ranks_on_link > 0) messages.ranks_on_link = ranks_on_link;
  const double sent = seconds(messages, on);
  return in_memory == 0
             ? sent
             : sent + seconds(schedules::in_place_cost(stages.first(in_memory), rank, input).in_buffer(), on);
}
/// How many of the stages of a rank are inside its node, in memory that its ranks share.
inline std::size_t stages_in_memory(std::span<const stage> stages, const schedule_input& input) {
  const auto node_of = [&](int one) { return input.nodes[static_cast<std::size_t>(one)]; };
  std::size_t count = 0;
  while (input.in_place && count < stages.size() &&
         node_of(stages[count].members.front()) == node_of(stages[count].members.back()))
    ++count;
  return count;
}

/// What takes the fewest seconds, by the model.
struct cheapest {
  choice one;
  double seconds;
};

/// The first of the candidates that takes the fewest seconds.
/// @param leaves  where nodes are combined first
inline cheapest first_least(const std::vector<choice>& candidates, int size, const schedule_input& input,
                            const schedules::machine& on, const node_leaves* leaves = nullptr) {
  const int rank = leaves ? leaves->groups().ranks(leaves->groups().largest()).front() : 0;
  const choice* best = nullptr;
  double least = 0;
  for (const auto& one : candidates) {
    const auto stages = leaves ? one.stages(*leaves, rank, input) : one.stages(rank, size, input);
    // One stage of all ranks is all_to_all for a rule that is not applied along the tree.
    if (!input.along_tree && one.which != choice::all_to_all && is_one_stage_of_all(stages, size)) continue;
    const auto in_memory = leaves                               ? stages_in_memory(stages, input)
                           : one.which == choice::shared_memory ? stages.size()
                                                                : 0;
    const auto ranks_on_link = leaves ? carriers_of_node(leaves->groups(), *one.by_node) : 0;
    const double time = seconds_of(stages, in_memory, rank, size, input, on, ranks_on_link);
    if (best && !(time < least)) continue;
    best = &one;
    least = time;
  }
  return {*best, least};
}

/// In memory that all ranks share, more ranks than take one stage in any case: the radix that costs least in plan.buffer().
/// (A gradient that lies elsewhere takes the same levels, so that its result has the same bits.) Of those that cost the
/// same, the usual one, or else the first.
inline schedules::shared_memory levels_in_place(int size, const schedule_input& input, const given_machine& on = {}) {
  constexpr schedules::shared_memory usual;
  if (!input.along_tree || schedules::shared_memory::is_short(size, input) ||
      static_cast<std::size_t>(size) <= usual.radix)
    return usual;
  std::vector<choice> all{{choice::shared_memory, usual.radix}};
  for (const auto radix : radices(size)) all.push_back({choice::shared_memory, radix});
  return {first_least(all, size, input, machine_of(on, input)).one.radix};
}

/// The radix of levels inside nodes that costs least, where some node has more ranks than take one stage in any case. Of
/// those that cost the same, the usual one, or else the first. (A leader sends the result to all whom it has met, so for
/// leaders levels may cost less in any node.)
inline std::size_t radix_inside(const node_leaves& leaves, schedules::carried each, const schedule_input& input,
                                const given_machine& on = {}) {
  const auto mates = leaves.groups().ranks(leaves.groups().largest()).size();
  constexpr auto usual = schedules::shared_memory{}.radix;
  const bool fit_one_level = mates <= usual;
  if (fit_one_level && each != schedules::carried::whole_by_leader) return one_level;
  const auto inside = [&](std::size_t radix) {  // and nothing across
    return choice{choice::shared_memory, 2, each, any_number_of_parts, radix};
  };
  std::vector<choice> all{inside(fit_one_level ? one_level : usual)};
  for (const auto radix : radices(static_cast<int>(mates)))
    if (each == schedules::carried::shard || radix <= widest_radix_of_doubling) all.push_back(inside(radix));
  return first_least(all, static_cast<int>(input.nodes.size()), input, machine_of(on, input), &leaves).one.radix_inside;
}

/// The schedule with the least seconds where nodes are combined first. In place, every rank has a part of its own.
///
/// The model is asked for a rank of the largest node. What is done inside nodes costs the same whatever is done across.
inline cheapest cheapest_by_node(int size, schedule_input input, const given_machine& on = {}) {
  const node_leaves leaves{node_groups(input.nodes)};
  const auto nodes = static_cast<int>(leaves.groups().size());
  std::vector<choice> all;
  const auto append = [&](const std::vector<choice>& across, schedules::carried each) {
    const auto radix = radix_inside(leaves, each, input, on);
    for (const auto& one : across) all.push_back({one.which, one.radix, each, one.most_parts, radix});
  };
  const bool short_ones = !input.in_place && is_short(size, input, on);
  if (short_ones)
    input.segments = 1;  // see short_vector_bytes
  else
    append(choices(nodes), schedules::carried::shard);
  if (!input.in_place) {
    append(ways_of_doubling(nodes), schedules::carried::whole);
    append(short_ones ? ways_of_doubling(nodes) : choices(nodes), schedules::carried::whole_by_leader);
  }
  return first_least(all, size, input, machine_of(on, input), &leaves);
}

/// The schedule with the least seconds() by the model of cost.hpp; without a machine, on one of those above. Every rank
/// computes it for rank 0, which is among the busiest: where ranks are folded, it first waits for another one's
/// gradient. (Its parts of short gradients among many ranks are empty: so those are not halved.)
///
/// Where the same stages have two names, as all_to_all and halving among 3 ranks, the choice is the first of doubling,
/// halving and all_to_all.
inline choice choose_schedule(int size, schedule_input input, const given_machine& on = {}) {
  if (input.along_tree && !input.nodes.empty()) return cheapest_by_node(size, input, on).one;
  if (input.in_place) return {choice::shared_memory, levels_in_place(size, input, on).radix};
  if (!input.along_tree) return {choice::all_to_all};
  if (size == 1) return {choice::doubling};
  const bool short_ones = is_short(size, input, on);
  if (!short_ones && is_measured_pair(size, input, on)) return {choice::halving};
  if (short_ones) input.segments = 1;
  return first_least(short_ones ? ways_of_doubling(size) : choices(size), size, input, machine_of(on, input)).one;
}

/// Whether a gradient in plan.buffer(), where nodes are combined first, is reduced in memory that each node's ranks share: where
/// shards go across in any case, or this costs no more than messages.
inline bool pays_in_buffer_by_node(int size, schedule_input input, const given_machine& on = {}) {
  const auto by_messages = cheapest_by_node(size, input, on);
  if (by_messages.one.by_node == schedules::carried::shard) return true;
  input.in_place = true;
  return cheapest_by_node(size, input, on).seconds <= by_messages.seconds;
}

/// Whether copying a gradient to memory that all ranks share, reducing it there and copying it back pays. Up to
/// most_ranks_measured, as measured: where the Gram matrices of all ranks are not larger than the gradients. Beyond, and on a
/// machine that was measured, by the model: messages between ranks of one node against in_place_cost.
inline bool pays_in_place(int size, const schedule_input& input, const given_machine& on = {}) {
  if (size < 2) return false;
  const auto ranks = static_cast<std::size_t>(size);
  if (!on && size <= most_ranks_measured)
    return schedules::shared_memory::is_short(size, input) ||
           input.segments * packed_size(ranks) * sizeof(double) * ranks <= input.length * input.element_size;
  auto node = machine_of(on, input);
  if (!on) node.across = node.inside;  // all ranks are on one
  const auto messages = choose_schedule(size, input, on).stages(0, size, input);
  return seconds(schedules::in_place_cost(size, input, levels_in_place(size, input, on)), node) <=
         seconds(schedules::cost_of(messages, 0, size, input, node), node);
}

}  // namespace adasum::detail
