// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <vector>

#include "segments.hpp"

/// A schedule as plain data: who meets whom, over which elements, in what order. No message is sent here.
namespace adasum {

/// What a schedule may look at when it decides.
struct problem {
  std::size_t length = 0;        ///< elements of one gradient
  std::size_t element_size = 0;  ///< bytes of one element
  std::size_t segments = 1;      ///< how many segments the gradient has
  bool along_tree = true;        ///< whether the rule can be applied pair by pair along the tree
  bool on_device = false;        ///< whether gradients lie where the host cannot read them
};

/// One level of the combination, seen from one rank. Before it, members[i] holds on the elements `held` the
/// combination of the gradients [leaves[i], leaves[i + 1]); after it, survivor i holds on parts[i] the combination of
/// all of the members' gradients. Later the stages are walked backwards, and every member gets all of `held` back.
///
///   recursive doubling   2 members, both survive, both parts are `held`            (nothing to gather later)
///   recursive halving    2 members, both survive, the parts are the halves of `held`
///   one exchange         all ranks are members, the parts are size() slices
///   folding              2 members, one survivor that holds everything; the other waits for the result
struct stage {
  std::vector<int> members;         ///< ranks, in leaf order
  std::size_t self = 0;             ///< this rank's place in members
  std::vector<std::size_t> leaves;  ///< members.size() + 1 boundaries
  std::size_t survivors = 0;        ///< members [0, survivors) go on; the others wait for the result
  index_range held;                 ///< elements that each member brings
  std::vector<index_range> parts;   ///< one for each survivor: all of them `held`, or a partition of it, in order
  std::vector<int> sum_over;        ///< ranks whose partial Gram matrices add up to the whole one; this one included
  bool placed = false;  ///< in shared memory: all members copy `held` to where the others read it (replicated)
  bool inner = false;   ///< combined by the schedule's inner rule (hierarchical), not by the call's rule

  bool survives() const { return self < survivors; }
  /// Whether every survivor combines all of `held` by itself (then `sum_over` is this rank alone).
  bool replicated() const { return parts.front() == held && (survivors == 1 || !held.empty()); }
};

}  // namespace adasum
