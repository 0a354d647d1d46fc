// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <exception>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "../../core/error.hpp"
#include "../../core/scalar.hpp"
#include "../../core/weigh.hpp"
#include "../references/erased.hpp"
#include "../references/rule_ref.hpp"
#include "../references/space_ref.hpp"
#include "combine_window.hpp"
#include "exact_merge.hpp"
#include "recombined_segment.hpp"

/// Segments combined on the vectors themselves, where their Gram matrices do not suffice (weighing::needs_vectors):
/// because a subtree cancels, or because squares leave the range of double. Rare, so it allocates what it needs.
namespace adasum::detail {

/// Combines some segments of n vectors, all of them one merge of the rule's tree after the other (or, under a rule for n
/// vectors, at once), on copies. All ranks that hold parts of the vectors do it together:
///
///     while (!(values = r.advance()).empty()) add values over the ranks, with the same bits on each;
///     r.require_success();
///
/// Every decision is taken from these sums, so that all ranks take the same ones, and make as many sums. A rank on which
/// something fails takes part in the next one and says so there; then all of them stop.
class recombination {
 public:
  /// Doubles that advance() needs for so many segments, or for one that stands for so many.
  static std::size_t scratch_size(const rule_ref& rule, std::size_t segments, std::size_t n) {
    return segments * packed_size(exact_merge::together(rule, n)) + 1;
  }

  /// @param segments     which ones; one, if it stands for all
  /// @param parts        how many parts each has: 1, or as many as there are segments. Together at most as many as `scratch`
  ///                     was made for
  /// @param elements     elements(k): the recombined_range of segment k
  /// @param leaf_counts  how many gradients each vector already combines; 0 for one that takes no part
  /// @param problem      what this rank has failed with already, if it has
  /// All arguments but `elements` must live until the end.
  recombination(const space_ref& space, const rule_ref& rule, vector_list vectors,
                std::span<const std::size_t> leaf_counts, std::span<const std::size_t> segments, std::size_t parts,
                std::size_t first_segment, function_ref<recombined_range(std::size_t)> elements,
                std::span<double> scratch, std::exception_ptr problem = nullptr)
      : space_(space),
        measures_distances_(rule.needs_distances()),
        merge_(rule, leaf_counts, first_segment, space.copies_are_double() ? number_format::binary64 : space.format(),
               space.format()),
        vectors_(vectors.size()),
        count_(segments.size()),
        parts_(parts),
        sums_(scratch),
        error_(std::move(problem)) {
    guarded([&] {
      merge_.allocate();
      copies_.emplace(space.copies());
      segments_.reserve(count_);
      for (const std::size_t k : segments)
        segments_.emplace_back(space, *copies_, vectors, elements(k), k, leaf_counts,
                               exact_merge::together(rule, vectors.size()), measures_distances_);
    });
  }
  recombination(const recombination&) = delete;
  recombination& operator=(const recombination&) = delete;

  /// Goes on until inner products are needed that must be added over the ranks.
  /// @return these, in scratch; empty when there is nothing left to add, well or not
  std::span<double> advance() {
    if (asked_ > 0 && !took_part_well()) phase_ = phase::ended;
    while (phase_ != phase::ended) {
      asked_ = 0;
      take_phase();
      if (asked_ > 0) return sums_.first(asked_);
    }
    return {};
  }

  /// From here on, this rank only says that it has failed.
  void fail(std::exception_ptr problem) {
    if (!error_) error_ = std::move(problem);
  }

  /// What has failed; null if nothing has.
  const std::exception_ptr& problem() const { return error_; }

  /// At the end: the results. @throws what failed on this rank; communication_error: another rank failed
  const std::vector<recombined_segment>& require_success() const {
    if (error_) std::rethrow_exception(error_);
    return segments_;
  }

  /// Writes the results. @param out  begins at the origin
  void write(std::byte* out) const {
    for (const auto& one : segments_) {
      for (std::size_t part = 0; part < one.parts.size(); ++part)
        one.copies.scale(one.copies.at(0), one.parts[part], -one.scale.exponent(part, 0));
      one.copies.copy_to(space_.at(out, one.elements.begin));
    }
  }

 private:
  enum class phase {
    measure,
    bring_to_range,
    bring_near_one,
    measure_differences,
    combine,
    measure_root,
    check_root,
    ended
  };

  void guarded(function_ref<void()> action) {
    if (error_) return;
    try {
      action();
    } catch (...) {
      error_ = std::current_exception();
    }
  }

  void take_phase() {
    switch (phase_) {
      case phase::measure:
        merge_.select(at_);
        measure(all);
        phase_ = phase::bring_to_range;
        break;
      case phase::bring_to_range:
        read_sums();
        for (auto& one : segments_) one.is_rescaled = one.scale.begin();
        rescale();
        measure(rescaled);
        phase_ = phase::bring_near_one;
        break;
      case phase::bring_near_one:
        read_sums();
        for (auto& one : segments_) learn_norms(one);
        rescale();
        measure(rescaled);
        phase_ = phase::measure_differences;
        break;
      case phase::measure_differences:
        read_sums();
        for (auto& one : segments_) find_gram(one);
        phase_ = phase::combine;
        if (measures_distances_) measure_differences();
        break;
      case phase::combine:
        if (measures_distances_) read_differences();
        for (auto& one : segments_) guarded([&] { merge_.combine(one); });
        phase_ = merge_.is_last() ? phase::measure_root : phase::measure;
        ++at_;
        break;
      case phase::measure_root:
        phase_ = phase::ended;
        if (!merge_.watches_noise() || vectors_ < 2) break;
        merge_.select_root();
        measure(all);
        phase_ = phase::check_root;
        break;
      case phase::check_root:
        read_sums();
        for (auto& one : segments_) check_root(one);
        phase_ = phase::ended;
        break;
      case phase::ended: break;
    }
  }

  void find_gram(recombined_segment& one) const {
    if (one.is_rescaled)
      one.scale.find_common(merge_.lift(), one.gram);
    else
      one.scale.add_parts(one.gram);
  }

  void read_differences() {
    for_each_sum([&](recombined_segment& one, const double* from, std::size_t) { merge_.note_differences(one, from); });
  }

  void learn_norms(recombined_segment& one) {
    merge_.note_norms(one);
    if (merge_.leave_out(one)) guarded([&] { merge_.clear_left_out(one); });
    one.is_finite = one.scale.is_finite();
    one.is_rescaled = one.is_rescaled && one.is_finite;
    if (one.is_rescaled) one.scale.normalize();
  }

  /// The root's own square says more of its norm than the quadratic form by which it was combined: there, what cancels
  /// leaves rounding errors. (Unless the square leaves the range in which it is accurate.)
  void check_root(recombined_segment& one) {
    if (!one.scale.is_finite(0)) return;
    if (one.scale.norm(0) <= one.noise[0]) return guarded([&] { merge_.clear(one); });
    for (std::size_t part = 0; part < one.parts.size(); ++part)
      if (one.scale.matrix(part)(0, 0) >= 0x1p-900) one.result_norms[part] = one.scale.norm(part, 0);
  }

  // ── sums over the ranks: the packed matrices of each part of some segments, and how many ranks have failed ──

  /// Asks for the inner products of the segments for which wanted(segment), of each part.
  void measure(function_ref<bool(const recombined_segment&)> wanted) {
    const auto size = packed_size(merge_.count());
    const auto kernel = [&](recombined_segment& one, double* to) {
      const auto inputs = merge_.inputs_of(one);
      for (const auto& part : one.parts) one.copies.measure(inputs, part, std::exchange(to, to + size));
    };
    for (auto& one : segments_) one.scale.select(merge_.inputs());
    ask([&](const recombined_segment& one) { return wanted(one) ? one.parts.size() : 0; }, kernel);
  }
  /// Asks for those of the vectors' differences, which distances are made of; one matrix of each segment that needs them.
  void measure_differences() {
    ask([&](const recombined_segment& one) { return std::size_t{merge_.needs_differences(one)}; },
        [&](recombined_segment& one, double* to) { merge_.measure_differences(one, to); });
  }
  /// @param matrices  matrices(segment): how many kernel(segment, to) writes
  void ask(function_ref<std::size_t(const recombined_segment&)> matrices,
           function_ref<void(recombined_segment&, double*)> kernel) {
    const auto size = packed_size(merge_.count());
    std::size_t used = 0;
    if (segments_.size() < count_) {  // not set up: then this is the first sum
      used = count_ * parts_ * size;
    } else {
      for (auto& one : segments_) {
        one.matrices = matrices(one);
        if (one.matrices == 0) continue;
        guarded([&] { kernel(one, sums_.data() + used); });
        used += one.matrices * size;
      }
    }
    if (used == 0) return;
    if (error_) std::ranges::fill(sums_.first(used), 0.0);
    sums_[used] = error_ ? 1 : 0;
    asked_ = used + 1;
  }

  void read_sums() {
    for_each_sum([&](recombined_segment& one, const double* from, std::size_t matrices) {
      one.scale.read({from, matrices * packed_size(merge_.count())});
    });
  }
  /// visit(segment, sums, how many matrices) for the segments that have been measured.
  void for_each_sum(function_ref<void(recombined_segment&, const double*, std::size_t)> visit) {
    const double* from = sums_.data();
    for (auto& one : segments_) {
      const auto matrices = std::exchange(one.matrices, 0);
      if (matrices == 0) continue;
      visit(one, from, matrices);
      from += matrices * packed_size(merge_.count());
    }
  }

  bool took_part_well() {
    if (sums_[asked_ - 1] == 0) return true;
    fail(std::make_exception_ptr(
        communication_error("adasum: another rank failed while segments were combined vector by vector")));
    return false;
  }

  static constexpr auto all = [](const recombined_segment&) { return true; };
  static constexpr auto rescaled = [](const recombined_segment& one) { return one.is_rescaled; };
  void rescale() {
    for (auto& one : segments_) {
      if (!one.is_rescaled) continue;
      guarded([&] {
        for (std::size_t part = 0; part < one.parts.size(); ++part)
          for (std::size_t i = 0; i < merge_.count(); ++i)
            one.copies.scale(merge_.input(one, i), one.parts[part], one.scale.by(part, i));
      });
      one.scale.note_multiplied();
    }
  }

  space_ref space_;
  bool measures_distances_;
  exact_merge merge_;
  std::size_t vectors_, count_, parts_;
  std::span<double> sums_;
  std::exception_ptr error_;
  std::optional<space_for_copies> copies_;
  std::vector<recombined_segment> segments_;
  phase phase_ = phase::measure;
  std::size_t at_ = 0;     // the merge
  std::size_t asked_ = 0;  // doubles of the sum that is being made
};

/// The elements of an unsettled segment of the window, counted from its origin (weigh_window).
inline recombined_range recombined_elements(const slice& window, std::size_t k, bool whole_model) {
  if (!whole_model) {
    const auto elements = window.local(k);
    return {elements, window.segments.range(k).size(), {{0, elements.size()}}};
  }
  const auto begin = window.range.begin - window.origin;
  recombined_range all{{begin, window.range.end - window.origin}, window.segments.all().size(), {}};
  for (std::size_t part = 0; part < window.segments.size(); ++part) {
    const auto elements = window.local(part);
    all.parts.push_back({elements.begin - begin, elements.end - begin});
  }
  return all;
}

/// Writes what has been recombined, and says so.
/// @param observe  observe(k, segment_outcome) for each of these segments
/// @param written  written(range) for the elements of each, counted from the origin
/// @throws what recombination::require_success throws
inline void finish_recombination(const space_ref& space, const recombination& run, std::byte* out,
                                 segment_observer observe, function_ref<void(index_range)> written) {
  const auto& results = run.require_success();
  run.write(out);
  space.fence();
  for (const auto& one : results)
    if (!one.elements.empty()) written(one.elements);
  for (const auto& one : results)
    for (std::size_t part = 0; part < one.parts.size(); ++part)
      observe(one.segment + part, segment_outcome{one.norms_of(part), one.weights, one.result_norms[part], true});
}

}  // namespace adasum::detail
