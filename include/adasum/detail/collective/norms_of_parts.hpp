// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "../../core/concepts.hpp"
#include "../../core/segments.hpp"
#include "allgather.hpp"
#include "row_sum_measures.hpp"
#include "row_sum_weights.hpp"

namespace adasum::detail {

/// ‖segment k‖ of a vector of which every rank has a part, on all ranks: each measures its own, and all gather these
/// numbers. Every element is in one part. Holds 8 bytes for each segment of each rank.
template <scalar T, execution_space<T> Space>
class norms_of_parts {
 public:
  /// @param space  must outlive this object
  /// @param part   this rank's
  norms_of_parts(const Space& space, segments_view segments, index_range part, std::size_t ranks)
      : part_(part),
        offsets_(segments.offsets().begin(), segments.offsets().end()),
        measures_(space, cut()),
        mine_(segments.size()),
        all_(ranks * segments.size()),
        of_segment_(ranks) {}
  norms_of_parts(const norms_of_parts&) = delete;
  norms_of_parts& operator=(const norms_of_parts&) = delete;

  /// @param vector  the whole one, of which only the part is read
  void measure(const T* vector) { measures_.measure(vector + part_.begin, mine_); }

  /// Every rank's norms, to all ranks.
  allgather exchanges(int rank, int size) {
    return {std::as_bytes(std::span(mine_)), rank, size, std::as_writable_bytes(std::span(all_))};
  }
  /// After these exchanges, with the same bits on all ranks.
  void add(std::span<double> norms) {
    for (std::size_t k = 0; k < norms.size(); ++k) {
      for (std::size_t r = 0; r < of_segment_.size(); ++r) of_segment_[r] = all_[r * mine_.size() + k];
      norms[k] = norm_of_norms(of_segment_);
    }
  }

 private:
  /// The segments within the part, counted from its first element.
  segments_view cut() {
    for (auto& offset : offsets_) offset = std::clamp(offset, part_.begin, part_.end) - part_.begin;
    return segments_view{offsets_};
  }

  index_range part_;
  std::vector<std::size_t> offsets_;
  row_sum_measures<T, Space> measures_;
  std::vector<double> mine_, all_, of_segment_;
};

}  // namespace adasum::detail
