// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <concepts>
#include <cstddef>
#include <span>
#include <vector>

#include "segments.hpp"

/// A schedule as plain data: who meets whom, over which elements, in what order. No message is sent here.
namespace adasum {

/// What a schedule may look at when it decides. The same on all ranks, but for `length` where gradients are cut into shards
/// (core/parts.hpp): then a schedule is asked as if there were as many ranks as replicas, and whom a rank meets must follow
/// from of_whole() alone.
struct schedule_input {
  std::size_t length = 0;        ///< elements of one gradient, or of the piece or shard of it that is to be cut
  std::size_t element_size = 0;  ///< bytes of one element
  std::size_t segments = 1;      ///< how many segments the gradient has
  bool along_tree = true;        ///< whether the rule can be applied pair by pair along the tree
  bool on_device = false;        ///< whether gradients lie where the host cannot read them
  bool once = false;             ///< whether the reduction is set up for a single run
  bool in_place = false;  ///< whether the gradients lie in memory that ranks share (asked only of a schedule that has
                          ///< a member uses_shared_memory)
  /// The node of each rank: any numbers, equal for ranks of one node. Empty where all nodes have one rank, or all ranks are
  /// on one node, or the communicator does not say.
  std::span<const int> nodes{};
  bool apart = false;  ///< whether each rank is known to be on a node of its own
  /// Where gradients are cut into shards: elements of the longest. Otherwise 0.
  std::size_t whole_length = 0;

  /// What a choice between ways of cutting should look at: the same on all ranks.
  constexpr schedule_input of_whole() const {
    auto found = *this;
    if (whole_length > 0) found.length = whole_length;
    return found;
  }
};

/// What a schedule makes of memory that ranks share: see the concept schedule.
enum class shared_memory_use {
  none,    ///< gradients are reduced by messages
  buffer,  ///< the gradient in plan.buffer() lies there, shared by the ranks of a node; gradients of the caller's are
           ///< reduced by messages
  buffer_if_all,  ///< the same, but only if all ranks share memory with each other
  preferred,  ///< gradients of the caller's too are copied there and back, if all ranks share memory and it has room;
              ///< by messages otherwise
  required,   ///< the schedule works nowhere else
};

/// One stage of the combination, seen from one rank. Before it, members[i] holds on the elements `held` the
/// combination of the gradients [leaf_offsets[i], leaf_offsets[i + 1]); after it, survivor i holds on parts[i] the
/// combination of all of the members' gradients. Later the stages are walked backwards, and every member gets all of
/// `held` back.
///
///   recursive doubling   p members, all survive, all parts are `held`              (nothing to gather later)
///   recursive halving    q members, all survive, the parts are q slices of `held`
///   all to all           all ranks are members, the parts are size() slices
///   folding              2 members, one survivor that holds everything; the other waits for the result
struct stage {
  std::vector<int> members;               ///< ranks, in leaf order
  std::size_t self = 0;                   ///< this rank's place in members
  std::vector<std::size_t> leaf_offsets;  ///< members.size() + 1 boundaries
  std::size_t survivors = 0;              ///< members [0, survivors) go on; the others wait for the result
  index_range held;                       ///< elements that each member brings
  std::vector<index_range> parts;         ///< one for each survivor: all of them `held`, or a partition of it, in order
  std::vector<int> sum_over;  ///< ranks whose partial Gram matrices add up to the whole one; this one included
  bool published = false;     ///< in shared memory: all members copy `held` to where the others read it (replicated)
  bool inner = false;         ///< combined by the inner rule of schedules::hierarchical, not by the call's rule
  /// In shared memory: the members are some of the ranks that share it (levels). Such stages come first. Ranks that
  /// meet at one have had the same number of them before; a rank that was in the `sum_over` of the one before is in
  /// that of this one, or waits.
  bool grouped = false;

  /// Whether this rank goes on.
  bool survives() const { return self < survivors; }
  /// Whether every survivor combines all of `held` by itself. (Then `sum_over` is this rank alone, or those that hold the
  /// other elements of the same vectors.) A partition of few elements may have all of them in its first part.
  bool replicated() const { return parts.front() == held && parts.back() == held && (survivors == 1 || !held.empty()); }
  /// This rank's part. @pre survives()
  index_range part() const { return parts[self]; }
  /// How many gradients member i's vector combines.
  std::size_t leaf_count(std::size_t i) const { return leaf_offsets[i + 1] - leaf_offsets[i]; }
  friend bool operator==(const stage&, const stage&) = default;
};

/// Whether a rank's stages are one stage of all ranks. The same on all of them.
template <std::derived_from<stage> Stage>
bool is_one_stage_of_all(const std::vector<Stage>& stages, int size) {
  return stages.size() == 1 && stages.front().members.size() == static_cast<std::size_t>(size);
}

/// Whether two lists of a rank's stages are alike but for the elements: then ranks with gradients of either length meet each
/// other as they should.
bool meet_alike(std::span<const stage> a, std::span<const stage> b);

}  // namespace adasum

#if ADASUM_DEFINITIONS

namespace adasum {

ADASUM_INLINE bool meet_alike(std::span<const stage> a, std::span<const stage> b) {
  const auto alike = [](const stage& one, const stage& other) {
    return one.members == other.members && one.self == other.self && one.leaf_offsets == other.leaf_offsets &&
           one.survivors == other.survivors && one.sum_over == other.sum_over && one.inner == other.inner;
  };
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!alike(a[i], b[i])) return false;
  return true;
}

}  // namespace adasum
#endif
