// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../../core/error.hpp"
#include "../../core/segments.hpp"
#include "../../core/stage.hpp"
#include "../../schedule/partition.hpp"
#include "engine_settings.hpp"

/// A plan's stages, from those of its schedule.
namespace adasum::detail {

/// Of a gradient that is reduced as a whole.
inline std::vector<planned_stage> planned(std::vector<stage> stages, std::size_t segments) {
  std::vector<planned_stage> found;
  found.reserve(stages.size());
  for (auto& one : stages) found.push_back({std::move(one), {0, segments}});
  return found;
}

/// The same elements, so many further on.
inline void shift(stage& one, std::size_t by) {
  const auto move = [by](index_range& range) { range = {range.begin + by, range.end + by}; };
  move(one.held);
  for (auto& part : one.parts) move(part);
}

/// The same result with nothing published: a gradient of one stage only is.
inline void send_parts(stage& one) {
  if (!one.published) return;
  for (std::size_t i = 0; i < one.survivors; ++i) one.parts[i] = part_of(one.held, one.survivors, i);
  one.sum_over.assign(one.members.begin(), one.members.begin() + static_cast<std::ptrdiff_t>(one.survivors));
  one.published = false;
}

/// Of a gradient that comes in pieces, and is weighed as a whole: from one stage of all gradients for each piece, or, where
/// the rule can be run by sums of vectors, from those sums.
/// @param pieces    the segments of each, in the order in which they come
/// @param stages_of stages_of(length): the schedule's, for a piece of that length
/// @param sums      whether the rule can be run by sums, along several stages (run_of_sums.hpp)
/// @param schedule  its name
/// @throws bad_input  the rule needs all gradients at once, and the stages do not bring them, or not in the same way for all
///                    pieces
template <class StagesOf>
std::vector<planned_stage> stages_of_pieces(segments_view segments, std::span<const index_range> pieces, int size,
                                            const StagesOf& stages_of, bool sums, std::string_view schedule) {
  const auto refuse = [&](const char* why) {
    throw bad_input("adasum: the schedule " + std::string(schedule) + " " + why);
  };
  std::vector<planned_stage> found;
  bool by_sums = false;
  for (std::size_t p = 0; p < pieces.size(); ++p) {
    const auto elements = segments.part(pieces[p].begin, pieces[p].size()).all();
    auto stages = stages_of(elements.size());
    if (stages.empty()) refuse("has no stage for this rank");
    if (sums && !is_one_stage_of_all(stages, size)) by_sums = true;
    for (auto& one : stages) {
      send_parts(one);
      shift(one, elements.begin);
      const bool inner = one.inner;
      found.push_back({std::move(one), pieces[p], p + 1, !inner});
    }
  }
  if (by_sums) {
    for (auto& one : found) one.weighed_together = false;
    return found;
  }
  const planned_stage* before = nullptr;
  for (const auto& one : found) {
    if (!one.weighed_together) continue;
    if (before && before->pieces_needed == one.pieces_needed)
      refuse("combines gradients pair by pair; buckets that are weighed together need one stage for all of them");
    if (before && (one.members != before->members || one.sum_over != before->sum_over ||
                   one.replicated() != before->replicated()))
      refuse("reduces short and long buckets in different ways, and they are to be weighed together");
    before = &one;
  }
  return found;
}

}  // namespace adasum::detail
