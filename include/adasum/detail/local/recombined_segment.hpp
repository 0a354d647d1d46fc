// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <span>
#include <vector>

#include "../../core/gram.hpp"
#include "../../core/segments.hpp"
#include "../references/space_ref.hpp"
#include "rescaling.hpp"
#include "segment_copies.hpp"

namespace adasum::detail {

/// The leaves [first, middle) are combined with [middle, last).
struct merge {
  std::size_t first, middle, last;
};

/// Of a segment that is recombined, this rank's elements, and how many it has in all.
struct recombined_range {
  index_range elements;  ///< counted from the origin
  std::size_t length;
  /// Where this rank's elements of each segment are, counted from the first of these elements; of itself, unless it stands
  /// for all segments of the window.
  std::vector<index_range> parts;
  /// What counts on another rank, though it is here, too: counted from the first of these elements, ascending.
  std::vector<index_range> measured_elsewhere{};
};

/// One segment on its way through recombine.
struct recombined_segment {
  /// @param together        how many vectors are combined at once
  /// @param with_distances  whether their distances may be measured
  recombined_segment(const space_ref& space, const space_for_copies& in, vector_list vectors,
                     const recombined_range& range, std::size_t number, std::span<const std::size_t> leaf_counts,
                     std::size_t together, bool with_distances)
      : elements(range.elements),
        parts(range.parts),
        is_scalar(range.length == 1),
        segment(number),
        norms(parts.size() * vectors.size()),
        weights(vectors.size(), 1),
        result_norms(parts.size()),
        counts(leaf_counts.begin(), leaf_counts.end()),
        noise(vectors.size(), 0),
        scale(parts.size(), vectors.size(), together, rescaling::range_of(space.format())),
        gram(packed_size(together)),
        squared_distances(with_distances ? packed_size(together) : 0),
        copies(space, in, vectors, range.elements, range.measured_elsewhere, with_distances ? 1 : 0) {}

  std::span<double> norms_of(std::size_t part) {
    return std::span(norms).subspan(part * weights.size(), weights.size());
  }
  std::span<const double> norms_of(std::size_t part) const {
    return std::span(norms).subspan(part * weights.size(), weights.size());
  }

  index_range elements;            ///< counted from the origin
  std::vector<index_range> parts;  ///< see recombined_range
  bool is_scalar;                  ///< one element, over all ranks
  std::size_t segment;             ///< its number in the window

  std::vector<double> norms;         ///< ‖vector i‖, by part
  std::vector<double> weights;       ///< the result is Σ weights[i]·vector i
  std::vector<double> result_norms;  ///< by part

  // Of the subtree that begins at a leaf: how many gradients it combines, and the norm up to which it is nothing but
  // rounding errors.
  std::vector<std::size_t> counts;
  std::vector<double> noise;

  rescaling scale;

  // Of the merge that is under way.
  std::vector<double> gram;               // what the rule is told
  std::vector<double> squared_distances;  // none under a rule that does not compare them
  bool has_differences = false;           // whether they are there
  std::size_t matrices = 0;               // how many are being added over the ranks
  bool is_rescaled = false, is_finite = true;

  segment_copies copies;  // last: once the space writes to them, nothing else may fail here
};

}  // namespace adasum::detail
