// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "../core/concepts.hpp"
#include "../core/optional_members.hpp"
#include "../core/stage.hpp"
#include "../detail/references/rule_ref.hpp"
#include "../detail/references/schedule_ref.hpp"
#include "automatic.hpp"
#include "shared_memory.hpp"

namespace adasum {
class node_leaves;
}

namespace adasum::detail {

/// A schedules::hierarchical whose rule and schedule across the nodes may be of any type.
struct two_levels {
  std::span<const int> node_of_rank;
  std::size_t radix;
  rule_ref inner;
  schedule_ref outer;

  std::vector<stage> stages(int rank, int size, const schedule_input& input) const;
  /// The nodes are leaves in the order of the schedule across them.
  node_leaves leaves(int size, schedule_input input) const;
  std::vector<int> leaf_ranks(int size, const schedule_input& input) const;
};

}  // namespace adasum::detail

namespace adasum::schedules {

/// Two levels: an inner rule among the ranks of each node, the call's rule across the nodes.
///
///     result = rule over the nodes j of (inner over the gradients of node j's ranks)
///
/// Each node counts once there, however many ranks it has. Only rules::mean weighs each node by the number of its ranks
/// that take part, so that with the mean inside the nodes, the result is the mean over all ranks. (Rules of your own can do
/// the same: pair_gram::leaves_a.) Nodes are ordered by their lowest ranks (or as outer.leaf_ranks says), and the ranks of a
/// node by rank. Inside a node the gradients are cut into as many shards as the smallest node has ranks; each shard then goes
/// across the nodes by the outer schedule, with inner products summed over all shards, and the shards are gathered inside the
/// nodes. Each weight is applied before anything is added, so an inner mean of 16-bit elements does not overflow where their
/// sum would.
///
/// If a node has more ranks than the radix, an inner rule that is applied along the tree (rules::adasum, mean, sum)
/// combines them level by level, 48 as 8 · 6: a Gram matrix is of 8 gradients then. Any other inner rule looks at all
/// gradients of a node at once, and takes one stage, with a Gram matrix of as many gradients as the node has ranks.
///
///     adasum::schedules::hierarchical order{comm.nodes(), adasum::rules::mean{}};
///
/// A reduction has one inner rule, so `outer` has none: no schedule of this kind has more than two levels.
///
/// Maleki et al., MLSys 2021, section 4 (the sum or mean inside a node, Adasum across nodes); the same with
/// rules::adasum inside the node as well.
template <rule Inner, schedule Outer = automatic>
struct hierarchical {
  static_assert(!detail::has_inner_rule<Outer>,
                "give adasum::schedules::hierarchical a schedule across the nodes that has no inner rule of its own: a "
                "reduction has one inner rule");

  static constexpr std::string_view name = "hierarchical";
  static constexpr bool supports_gram_rules = Outer::supports_gram_rules;

  /// The node of each rank: any numbers, equal for ranks of one node. See mpi_communicator::nodes().
  std::vector<int> node_of_rank;
  Inner inner{};  ///< the rule inside each node
  Outer outer{};  ///< the schedule across the nodes
  /// The most ranks of a node that meet at a level, at least 2; a prime factor that is larger is a level all the same. For
  /// inner rules that are applied along the tree.
  std::size_t radix = shared_memory{}.radix;
  /// @cond internal
  friend const Inner& inner_rule_of(detail::own_type, const hierarchical& order) { return order.inner; }
  /// @endcond
  /// Inner rules are compared as ranks compare them.
  friend bool operator==(const hierarchical& a, const hierarchical& b) {
    return a.node_of_rank == b.node_of_rank && a.radix == b.radix && detail::do_the_same(a.outer, b.outer) &&
           std::string_view(a.inner.name) == b.inner.name && parameters_of(a.inner) == parameters_of(b.inner);
  }

  /// @throws bad_input  if node_of_rank does not name a node for each rank, or the radix is less than 2
  std::vector<stage> stages(int rank, int size, const schedule_input& input) const {
    return levels().stages(rank, size, input);
  }

  /// In a plan's own buffer, ranks of one node that share memory work there in place.
  static shared_memory_use uses_shared_memory(int, const schedule_input&) { return shared_memory_use::buffer; }

  /// The radix, and those of the schedule across the nodes; the inner rule and the nodes are compared separately.
  std::vector<double> parameters() const {
    std::vector<double> all{static_cast<double>(radix)};
    for (const double one : parameters_of(outer)) all.push_back(one);
    return all;
  }

  /// Which rank's gradient is which leaf.
  std::vector<int> leaf_ranks(int size, const schedule_input& input) const { return levels().leaf_ranks(size, input); }

 private:
  detail::two_levels levels() const { return {node_of_rank, radix, inner, outer}; }
};

/// @cond internal
template <rule Inner>
hierarchical(std::vector<int>, Inner) -> hierarchical<Inner>;
template <rule Inner, schedule Outer>
hierarchical(std::vector<int>, Inner, Outer) -> hierarchical<Inner, Outer>;
template <rule Inner, schedule Outer>
hierarchical(std::vector<int>, Inner, Outer, std::size_t) -> hierarchical<Inner, Outer>;
/// @endcond

}  // namespace adasum::schedules

#if ADASUM_DEFINITIONS
#include <string>

#include "../core/error.hpp"
#include "../core/node_groups.hpp"
#include "by_node.hpp"
#include "levels.hpp"

namespace adasum::detail {

ADASUM_INLINE node_leaves two_levels::leaves(int size, schedule_input input) const {
  if (node_of_rank.size() != static_cast<std::size_t>(size))
    throw bad_input({"adasum::schedules::hierarchical: nodes are given for ", counted(node_of_rank.size(), "rank"),
                     ", the communicator has ", size});
  const node_groups groups(node_of_rank);
  input.nodes = {};
  return node_leaves(groups, outer.leaf_ranks(static_cast<int>(groups.size()), input));
}

ADASUM_INLINE std::vector<stage> two_levels::stages(int rank, int size, const schedule_input& input) const {
  const auto known = leaves(size, input);
  require_radix(radix, "hierarchical");
  // A pairwise rule leaves a single vector as it is, of a rank or of a node; another need not.
  const bool only_stage = known.groups().size() == 1 && input.along_tree;
  const schedules::inside_node inside{.by_inner_rule = true,
                                      .even_alone = only_stage || !inner.is_pairwise(),
                                      .radix = inner.follows_tree() ? radix : one_level};
  return schedules::stages_by_node(
      known, rank, input, inside,
      [&](int node, int nodes, const schedule_input& among_nodes) { return outer.stages(node, nodes, among_nodes); });
}

ADASUM_INLINE std::vector<int> two_levels::leaf_ranks(int size, const schedule_input& input) const {
  return leaves(size, input).ranks();
}

}  // namespace adasum::detail
#endif
