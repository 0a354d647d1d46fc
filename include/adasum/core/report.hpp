// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "options.hpp"

namespace adasum {
namespace detail {
class report_writer;
}

/// One gradient that held Inf or NaN, and where.
struct nonfinite_input {
  int rank;             ///< whose gradient (or, for a local combination, which of the gradients)
  std::size_t segment;  ///< in which segment
  friend constexpr bool operator==(const nonfinite_input&, const nonfinite_input&) = default;
};

/// What one combination found about its gradients, without an extra pass over the data. Norms and weights are the same on
/// every rank; the counters at the end are those of this rank. Only the library writes reports (core/report_writer.hpp).
class report {
 public:
  /// An empty report: no gradients, no segments.
  report() = default;

  /// How many segments the gradients have.
  std::size_t segments() const { return segments_; }
  /// How many gradients were combined.
  std::size_t contributions() const { return contributions_; }
  /// The name of the rule that ran.
  std::string_view rule() const { return rule_; }
  /// The schedule that ran (what `automatic` chose); empty for a local combination.
  std::string_view schedule() const { return schedule_; }
  /// Whether all inner products were measured. If not (measuring::when_needed, and a rule that needs none; with
  /// schedules::hierarchical one of its two rules suffices), the orthogonality and all norms below are NaN, except those
  /// of gradients that were left out.
  bool measured() const { return measured_; }

  /// ‖segment k of gradient i‖₂.
  double norm(std::size_t i, std::size_t k) const { return at(i, k).norm; }
  /// The weight cᵢ of gradient i in segment k: the result is Σ cᵢ gᵢ.
  double weight(std::size_t i, std::size_t k) const { return at(i, k).weight; }
  /// ‖segment k of the result‖₂, from inner products.
  double result_norm(std::size_t k) const;

  /// ‖result‖² / Σᵢ‖gᵢ‖² of segment k: 1 where the gradients are orthogonal, 1/n where they are equal (under Adasum). 1 if
  /// all of them are zero; NaN if a gradient that takes part is not finite, or if none takes part. Maleki et al., MLSys 2021,
  /// section 4.
  double orthogonality(std::size_t k) const;
  /// The same over all segments together.
  double orthogonality() const { return ratio(0, segments_); }

  /// Whether every gradient was finite. If measured() is false, only those that were left out are known not to be.
  bool finite() const;
  /// The gradients that were left out because they were not finite (nonfinite_policy::exclude). Their weights are 0, and
  /// their norms Inf in the segments that were not finite, 0 in the others.
  const std::vector<int>& excluded() const { return excluded_; }
  /// Whether no gradient is left; then the result is 0 and the orthogonality is NaN.
  bool all_excluded() const { return contributions_ > 0 && excluded_.size() == contributions_; }
  /// The gradients and segments that held Inf or NaN, as far as finite() knows them, ordered by segment and then rank.
  std::vector<nonfinite_input> nonfinite() const;

  /// How often this rank combined a segment vector by vector, because inner products had lost too much.
  std::size_t recombined_segments() const { return recombined_segments_; }
  /// How often the rule used a fallback in place of its own weights (rules::adacons and rules::imtl_g use the mean).
  std::size_t fallbacks() const { return fallbacks_; }
  /// How this rank's elements travelled: options::wire, or `same` if they were combined in memory that ranks share and did
  /// not travel.
  wire_format wire() const { return wire_; }
  /// Bytes that this rank sent, including small messages, but without those of the agreement check.
  std::size_t bytes_sent() const { return bytes_sent_; }

  /// The norm and weight of one gradient in one segment.
  struct entry {
    double norm = std::numeric_limits<double>::quiet_NaN();    ///< ‖gᵢ‖
    double weight = std::numeric_limits<double>::quiet_NaN();  ///< cᵢ
  };

 private:
  friend class detail::report_writer;

  /// An empty report with room for everything.
  report(std::size_t contributions, std::size_t segments, std::string_view rule, std::string_view schedule);

  const entry& at(std::size_t i, std::size_t k) const;
  bool is_excluded(std::size_t i) const;
  void require_segment(std::size_t k) const;

  /// Norms are divided by the largest before they are squared, so that nothing overflows.
  double ratio(std::size_t first, std::size_t last) const;

  std::size_t contributions_ = 0, segments_ = 0;
  std::vector<entry> entries_;
  std::vector<double> result_norms_;
  std::vector<int> excluded_;
  std::string rule_, schedule_;
  bool measured_ = false;
  wire_format wire_ = wire_format::same;
  std::size_t bytes_sent_ = 0, recombined_segments_ = 0, fallbacks_ = 0;
};

}  // namespace adasum

#if ADASUM_DEFINITIONS
#include <algorithm>

#include "error.hpp"
#include "scalar.hpp"

namespace adasum {

ADASUM_INLINE report::report(std::size_t contributions, std::size_t segments, std::string_view rule,
                             std::string_view schedule)
    : contributions_(contributions),
      segments_(segments),
      entries_(contributions * segments),
      result_norms_(segments),
      rule_(rule),
      schedule_(schedule) {}

ADASUM_INLINE double report::result_norm(std::size_t k) const {
  require_segment(k);
  return result_norms_[k];
}

ADASUM_INLINE double report::orthogonality(std::size_t k) const {
  require_segment(k);
  return ratio(k, k + 1);
}

ADASUM_INLINE bool report::finite() const { return nonfinite().empty(); }

ADASUM_INLINE std::vector<nonfinite_input> report::nonfinite() const {
  std::vector<nonfinite_input> found;
  for (std::size_t k = 0; k < segments_; ++k)
    for (std::size_t i = 0; i < contributions_; ++i)
      if (!detail::is_finite(at(i, k).norm) && (measured_ || is_excluded(i))) found.push_back({static_cast<int>(i), k});
  return found;
}

ADASUM_INLINE const report::entry& report::at(std::size_t i, std::size_t k) const {
  require_segment(k);
  if (i >= contributions_)
    throw bad_input({"adasum::report: there is no contribution ", i, ", only ", contributions_, ", numbered from 0"});
  return entries_[i * segments_ + k];
}

ADASUM_INLINE bool report::is_excluded(std::size_t i) const {
  return std::find(excluded_.begin(), excluded_.end(), static_cast<int>(i)) != excluded_.end();
}

ADASUM_INLINE void report::require_segment(std::size_t k) const {
  if (k >= segments_)
    throw bad_input({"adasum::report: there is no segment ", k, ", only ", segments_, ", numbered from 0"});
}

ADASUM_INLINE double report::ratio(std::size_t first, std::size_t last) const {
  if (!measured_ || all_excluded()) return std::numeric_limits<double>::quiet_NaN();
  double largest = 0, result = 0, inputs = 0;
  const auto for_each_input = [&](auto&& visit) {
    for (std::size_t i = 0; i < contributions_; ++i)
      if (!is_excluded(i))
        for (auto k = first; k < last; ++k) visit(at(i, k).norm);
  };
  const auto square = [&](double norm) { return (norm / largest) * (norm / largest); };
  bool finite = true;
  for_each_input([&](double norm) {
    finite &= detail::is_finite(norm);
    largest = std::max(largest, norm);
  });
  if (!finite) return std::numeric_limits<double>::quiet_NaN();
  if (largest == 0) return 1;
  for_each_input([&](double norm) { inputs += square(norm); });
  for (auto k = first; k < last; ++k) result += square(result_norms_[k]);
  return result / inputs;
}

}  // namespace adasum
#endif
