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

/// Of a gradient that comes in pieces, and is weighed as a whole.
/// @param pieces    the segments of each, in the order in which they come
/// @param stages_of stages_of(length): the schedule's, for a gradient of that length
/// @param schedule  its name
/// @throws bad_input  its stages are not those of a rule for all gradients at once, or not the same for all pieces
template <class StagesOf>
std::vector<planned_stage> stages_of_pieces(segments_view segments, std::span<const index_range> pieces,
                                            const StagesOf& stages_of, std::string_view schedule) {
  const auto refuse = [&](const char* why) {
    throw bad_input("adasum: the schedule " + std::string(schedule) + " " + why);
  };
  std::vector<planned_stage> found;
  for (std::size_t p = 0; p < pieces.size(); ++p) {
    const auto elements = segments.part(pieces[p].begin, pieces[p].size()).all();
    auto stages = stages_of(elements.size());
    if (stages.empty()) refuse("has no stage for this rank");
    std::size_t weighed = 0;
    for (auto& one : stages) {
      if (one.published) {  // a gradient of one stage only is
        for (std::size_t i = 0; i < one.survivors; ++i) one.parts[i] = part_of(one.held, one.survivors, i);
        one.sum_over.assign(one.members.begin(), one.members.begin() + static_cast<std::ptrdiff_t>(one.survivors));
        one.published = false;
      }
      shift(one, elements.begin);
      if (!one.inner && ++weighed > 1)
        refuse("combines gradients pair by pair; buckets that are weighed together need one stage for all of them");
      found.push_back({std::move(one), pieces[p], p + 1});
    }
  }
  const auto& last = found.back();
  for (const auto& one : found)
    if (one.weighed_together() && last.weighed_together() &&
        (one.members != last.members || one.sum_over != last.sum_over || one.replicated() != last.replicated()))
      refuse("reduces short and long buckets in different ways, and they are to be weighed together");
  return found;
}

}  // namespace adasum::detail
