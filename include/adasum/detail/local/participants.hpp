// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "../../core/error.hpp"
#include "../../core/report_writer.hpp"
#include "../references/space_ref.hpp"
#include "nonfinite.hpp"

namespace adasum::detail {

/// Which of this process's gradients take part, where not all of them may be finite. One that does not is replaced by
/// zeros, as a rank's gradient is.
class local_participants {
 public:
  local_participants(const space_ref& space, std::vector<const void*>& vectors, segments_view segments)
      : space_(space), vectors_(vectors), segments_(segments), leaf_counts_(vectors.size(), 1) {}

  /// @throws nonfinite_error if `raise` and a gradient is not finite
  void decide(bool raise, report_writer& found) {
    const auto k = segments_.size(), n = vectors_.size();
    flags_.resize(n * k);
    std::vector<double> gram(k);
    for (std::size_t i = 0; i < n; ++i) {
      const auto mine = std::span(flags_).subspan(i * k, k);
      find_nonfinite(space_, vectors_[i], segments_, gram, mine);
      if (std::ranges::find(mine, 1) == mine.end()) continue;
      leaf_counts_[i] = 0;
      found.exclude(static_cast<int>(i));
    }
    if (found.get().excluded().empty()) return;
    if (raise) throw nonfinite_error("adasum: Inf or NaN in " + describe_nonfinite(flags_, k, "gradient"));
    zeros_.emplace(space_.allocate(segments_.all().end));
    std::ranges::fill(gram, 0.0);
    space_.mix(whole(segments_), vector_list(vectors_).first(1), gram.data(), zeros_->data());
    for (std::size_t i = 0; i < n; ++i)
      if (leaf_counts_[i] == 0) vectors_[i] = zeros_->data();
  }

  std::span<const std::size_t> leaf_counts() const { return leaf_counts_; }
  void finish(report_writer& found) const { found.finish_excluded(flags_); }

 private:
  const space_ref& space_;
  std::vector<const void*>& vectors_;
  segments_view segments_;
  std::vector<std::size_t> leaf_counts_;
  std::vector<unsigned char> flags_;
  std::optional<space_memory> zeros_;
};

}  // namespace adasum::detail
