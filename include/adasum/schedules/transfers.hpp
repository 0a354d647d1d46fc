// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <cstddef>
#include <vector>

#include "../core/stage.hpp"

/// What one rank sends and receives in a stage, as plain data: the engines send it, the cost model counts it.
namespace adasum::detail {

/// What one rank sends to another, without its bytes: elements, records and norms, each a message of its own
/// but for records that are joined to elements.
struct transfer {
  std::size_t member;         ///< the peer's place in the stage's members
  index_range elements;       ///< of the gradient; possibly none
  index_range leaves;         ///< gradients whose records (report::entry, one for each segment) travel along
  bool result_norms = false;  ///< the norms of the result's segments travel along
  bool joined = false;        ///< the records are the end of the elements' message
};

/// Up to how many elements have records at the end of their message. Elements must be copied for that, to where there is
/// room for records behind them: for 8 KiB, that takes 0.1 µs, whereas another message takes 0.2 µs or more. (The
/// length of the records has no say. Ranks whose segments differ by mistake must exchange the same number of messages,
/// to tell each other that they fail.)
/// @param copied_by_host  whether the host can do so: not in memory of a device, nor where elements are rounded on their way
constexpr std::size_t most_joined(std::size_t element_size, bool copied_by_host) {
  return copied_by_host ? 8192 / (element_size > 0 ? element_size : 1) : 0;
}

/// The messages of one exchange. Between two ranks, each one of `sends` is one of `receives` on the other side.
struct transfers {
  std::vector<transfer> sends, receives;
  bool empty() const { return sends.empty() && receives.empty(); }
};

/// Gradients of which something is known before a stage: of a single one, there is nothing yet.
inline index_range known_leaves(const stage& stage, std::size_t member) {
  return stage.leaf_count(member) > 1 ? index_range{stage.leaf_offsets[member], stage.leaf_offsets[member + 1]}
                                      : index_range{};
}

/// Before a stage combines, every survivor gets its part of each other member's vector. What is received are elements
/// of that member's vector.
/// @param most_joined  see there
inline transfers transfers_to_combine(const stage& stage, std::size_t most_joined = 0) {
  transfers found;
  const auto add = [&](std::vector<transfer>& to, std::size_t member, index_range elements, index_range known) {
    const bool joined = !elements.empty() && !known.empty() && elements.size() <= most_joined;
    to.push_back({member, elements, known, false, joined});
  };
  for (std::size_t i = 0; i < stage.members.size(); ++i) {
    if (i == stage.self) continue;
    if (i < stage.survivors) add(found.sends, i, stage.parts[i], known_leaves(stage, stage.self));
    if (stage.survives()) add(found.receives, i, stage.part(), known_leaves(stage, i));
  }
  return found;
}

/// On the way back, survivors that hold parts of the result give them to each other and to the members that wait;
/// these are told all that is known, by the first survivor.
/// @param leaves  of the whole reduction
inline transfers transfers_to_deliver(const stage& stage, std::size_t leaves) {
  transfers found;
  const bool divided = !stage.replicated();  // otherwise all survivors have the same, and the first one gives it
  for (std::size_t i = 0; i < stage.members.size(); ++i) {
    if (i == stage.self) continue;
    const bool other_survives = i < stage.survivors;
    const auto teller = stage.survives() ? stage.self : i;
    const bool tells = stage.survives() != other_survives && teller == 0;
    if (!divided && !tells) continue;
    if (stage.survives()) found.sends.push_back({i, stage.part(), {0, tells ? leaves : 0}, tells});
    if (other_survives) found.receives.push_back({i, stage.parts[i], {0, tells ? leaves : 0}, tells});
  }
  return found;
}

}  // namespace adasum::detail
