// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "../../../core/stage.hpp"
#include "told_losses.hpp"

namespace adasum::detail {

/// What was lost in rounding elements for messages (options::wire), as far as this rank knows: in the end, all that was lost
/// on any rank. It is counted where elements are rounded, and told with them.
///
/// Down the stages, a rank knows what was lost of the vector that it holds: in rounding these elements on their way here,
/// and before. A rank that holds other elements knows of those. Where several hold the same elements, they know the same,
/// and it counts once. Back up the stages, each tells with its part of the result what it knows, and adds what it is told.
class losses_of_run {
 public:
  /// @param pieces  of the gradient, which go down the stages one by one
  explicit losses_of_run(std::size_t pieces) : of_piece_(pieces) {}

  void begin_run() {
    before_ = {};
    std::ranges::fill(of_piece_, told_losses{});
  }
  /// Other vectors go down the same stages.
  void begin_vectors() {
    before_ = all();
    std::ranges::fill(of_piece_, told_losses{});
  }
  told_losses& of(std::size_t piece) { return of_piece_[piece]; }
  told_losses all() const {
    auto sum = before_;
    for (const auto& lost : of_piece_) sum += lost;
    return sum;
  }

  // ── before a stage combines ──

  /// Whether member i tells member j with its elements what it knows. Where each survivor gets a part, a survivor goes on
  /// knowing what it knew; one that has no elements left tells the first that has.
  static bool are_told(const stage& stage, std::size_t i, std::size_t j) {
    if (stage.replicated()) return j < stage.survivors;
    return forgets(stage, i) && j == first_with_elements(stage);
  }
  /// Whether it knows nothing any more then.
  static bool forgets(const stage& stage, std::size_t i) { return i >= stage.survivors || stage.parts[i].empty(); }

 private:
  static std::size_t first_with_elements(const stage& stage) {
    return static_cast<std::size_t>(std::ranges::find_if(stage.parts, [](index_range part) { return !part.empty(); }) -
                                    stage.parts.begin());
  }

  told_losses before_;
  std::vector<told_losses> of_piece_;
};

}  // namespace adasum::detail
