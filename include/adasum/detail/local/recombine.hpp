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

#include "../../core/concepts.hpp"
#include "../../core/error.hpp"
#include "../../core/float_bits.hpp"
#include "../../core/weigh.hpp"
#include "combine_window.hpp"
#include "merging.hpp"
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
template <scalar T, execution_space<T> Space, rule Rule>
class recombination {
 public:
  using merging_type = merging<T, Space, Rule>;
  using segment_type = recombined_segment<T, Space>;

  /// Doubles that advance() needs for so many segments, or for one that stands for so many.
  static constexpr std::size_t scratch_size(std::size_t segments, std::size_t n) {
    return segments * packed_size(merging_type::together(n)) + 1;
  }

  /// @param segments     which ones, at most as many as `scratch` was made for; one, if it stands for all
  /// @param elements     elements(k): the recombined_range of segment k
  /// @param leaf_counts  how many gradients each vector already combines; 0 for one that takes no part
  /// @param problem      what this rank has failed with already, if it has
  /// All arguments but `elements` must live until the end.
  template <class Elements>
  recombination(const Space& space, Rule& rule, std::span<const T* const> vectors,
                std::span<const std::size_t> leaf_counts, std::span<const std::size_t> segments,
                std::size_t first_segment, const Elements& elements, std::span<double> scratch,
                std::exception_ptr problem = nullptr)
      : merging_(rule, leaf_counts, first_segment),
        vectors_(vectors.size()),
        count_(segments.size()),
        sums_(scratch),
        error_(std::move(problem)) {
    guarded([&] {
      merging_.allocate();
      segments_.reserve(count_);
      for (const std::size_t k : segments)
        segments_.emplace_back(space, vectors, elements(k), k, leaf_counts, merging_type::together(vectors.size()),
                               needs_distances<Rule>);
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
  const std::vector<segment_type>& require_success() const {
    if (error_) std::rethrow_exception(error_);
    return segments_;
  }

  /// Writes the results. @param out  begins at the origin
  void write(T* out) const {
    for (const auto& one : segments_) one.copies.copy_to(out + one.elements.begin);
  }

 private:
  enum class phase {
    measure,
    bring_to_range,
    bring_to_scale,
    measure_differences,
    combine,
    measure_root,
    check_root,
    ended
  };

  template <class Action>
  void guarded(Action&& action) {
    if (error_) return;
    try {
      std::forward<Action>(action)();
    } catch (...) {
      error_ = std::current_exception();
    }
  }

  void take_phase() {
    switch (phase_) {
      case phase::measure:
        merging_.select(at_);
        measure([](const segment_type&) { return true; });
        phase_ = phase::bring_to_range;
        break;
      case phase::bring_to_range:
        read_sums();
        for (auto& one : segments_) {
          leave_out(one, largest_mixed_square<T>);
          one.is_rescaled = one.scale.begin(merging_type::gram_of(one));
        }
        rescale();
        measure_by_parts(rescaled);
        phase_ = phase::bring_to_scale;
        break;
      case phase::bring_to_scale:
        read_sums(true);
        for (auto& one : segments_) {
          leave_out(one, std::numeric_limits<double>::max());
          one.is_finite = one.scale.note_norms(merging_type::gram_of(one));
          if (one.is_rescaled) merging_.note_norms_of_parts(one);
          one.is_rescaled = one.is_rescaled && one.is_finite;
          if (one.is_rescaled) one.scale.find_common(merging_type::gram_of(one), merging_type::lift);
        }
        rescale();
        measure(rescaled);
        phase_ = phase::measure_differences;
        break;
      case phase::measure_differences:
        read_sums();
        phase_ = phase::combine;
        if constexpr (needs_distances<Rule>)
          measure(merging_type::needs_differences,
                  [&](segment_type& one, double* to) { merging_.measure_differences(one, to); });
        break;
      case phase::combine:
        if constexpr (needs_distances<Rule>)
          for_each_sum(
              [&](segment_type& one, const double* from, std::size_t) { merging_.note_differences(one, from); });
        for (auto& one : segments_) guarded([&] { merging_.combine(one); });
        phase_ = merging_.is_last() ? phase::measure_root : phase::measure;
        ++at_;
        break;
      case phase::measure_root:
        phase_ = phase::ended;
        if (!merging_type::watches_noise || vectors_ < 2) break;
        merging_.select_root();
        measure_by_parts([](const segment_type&) { return true; });
        phase_ = phase::check_root;
        break;
      case phase::check_root:
        read_sums(true);
        for (auto& one : segments_) check_root(one);
        phase_ = phase::ended;
        break;
      case phase::ended: break;
    }
  }

  void leave_out(segment_type& one, double largest_square) {
    if (merging_type::leave_out(one, largest_square)) guarded([&] { merging_.clear_left_out(one); });
  }

  /// The root's own square says more of its norm than the quadratic form by which it was combined: there, what cancels
  /// leaves rounding errors. (Unless the square leaves the range in which it is accurate.)
  void check_root(segment_type& one) {
    const double square = one.gram[0];
    one.norms_of_parts.note_root();
    if (!is_finite(square)) return;
    if (std::sqrt(square) <= one.noise[0])
      guarded([&] { merging_.clear(one); });
    else if (square >= 0x1p-900)
      one.result_norm = std::sqrt(square);
  }

  // ── sums over the ranks: the packed matrices of some segments, or of all parts of one, and how many ranks have failed ──

  /// Asks for the inner products of the segments for which wanted(segment).
  template <class Wanted>
  void measure(const Wanted& wanted) {
    measure(wanted, [&](segment_type& one, double* to) { one.copies.measure(merging_.inputs_of(one), to); });
  }
  /// … those of each part of a segment that has parts.
  template <class Wanted>
  void measure_by_parts(const Wanted& wanted) {
    const auto size = packed_size(merging_.count());
    const auto kernel = [&](segment_type& one, double* to) {
      const auto inputs = merging_.inputs_of(one);
      if (one.parts.empty()) one.copies.measure(inputs, to);
      for (const auto& part : one.parts) one.copies.measure(inputs, part, std::exchange(to, to + size));
    };
    measure(wanted, kernel, true);
  }
  /// … for what kernel(segment, to) writes.
  template <class Wanted, class Kernel>
  void measure(const Wanted& wanted, const Kernel& kernel, bool by_parts = false) {
    const auto size = packed_size(merging_.count());
    std::size_t used = 0;
    if (segments_.size() < count_) {  // not set up: then this is the first sum
      used = count_ * size;
    } else {
      for (auto& one : segments_) {
        one.matrices = !wanted(one) ? 0 : by_parts && !one.parts.empty() ? one.parts.size() : 1;
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

  void read_sums(bool by_parts = false) {
    const auto size = packed_size(merging_.count());
    for_each_sum([&](segment_type& one, const double* from, std::size_t matrices) {
      const auto gram = std::span(one.gram).first(size);
      if (by_parts && !one.parts.empty())
        one.norms_of_parts.read({from, matrices * size}, gram);
      else
        std::copy_n(from, size, gram.begin());
    });
  }
  /// visit(segment, sums, how many matrices) for the segments that have been measured.
  template <class Visitor>
  void for_each_sum(const Visitor& visit) {
    const double* from = sums_.data();
    for (auto& one : segments_) {
      const auto matrices = std::exchange(one.matrices, 0);
      if (matrices == 0) continue;
      visit(one, from, matrices);
      from += matrices * packed_size(merging_.count());
    }
  }

  bool took_part_well() {
    if (sums_[asked_ - 1] == 0) return true;
    fail(std::make_exception_ptr(
        communication_error("adasum: another rank failed while segments were combined vector by vector")));
    return false;
  }

  static bool rescaled(const segment_type& one) { return one.is_rescaled; }
  void rescale() {
    for (auto& one : segments_)
      if (one.is_rescaled)
        guarded([&] {
          for (std::size_t i = 0; i < merging_.count(); ++i) one.copies.scale(merging_.input(one, i), one.scale.by[i]);
        });
  }

  merging_type merging_;
  std::size_t vectors_, count_;
  std::span<double> sums_;
  std::exception_ptr error_;
  std::vector<segment_type> segments_;
  phase phase_ = phase::measure;
  std::size_t at_ = 0;     // the merge
  std::size_t asked_ = 0;  // doubles of the sum that is being made
};

/// The elements of an unsettled segment of the window, counted from its origin (weigh_window).
inline recombined_range recombined_elements(const slice& window, std::size_t k, bool whole_model) {
  if (!whole_model) return {window.local(k), window.segments.range(k).size(), {}};
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
template <scalar T, execution_space<T> Space, rule Rule, class Observer, class Written>
void finish_recombination(const Space& space, const recombination<T, Space, Rule>& run, bool whole_model,
                          const round_memory& memory, T* out, const Observer& observe, const Written& written) {
  const auto& results = run.require_success();
  run.write(out);
  space.fence();
  for (const auto& one : results)
    if (!one.elements.empty()) written(one.elements);
  if (!whole_model) {
    for (const auto& one : results)
      observe(one.segment, segment_outcome{one.norms, one.weights, one.result_norm, true});
    return;
  }
  std::ranges::copy(results.front().weights, memory.weights_of(0).begin());
  copy_first_weights(memory);
  for (std::size_t k = 0; k < memory.segments(); ++k) {
    auto outcome = outcome_of(memory, k);
    results.front().norms_of_parts.correct(k, memory.gram_of(k), memory.weights_of(k), memory.norms,
                                           outcome.result_norm);
    outcome.recombined = true;
    observe(k, outcome);
  }
}

}  // namespace adasum::detail
