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
#include "../../core/optional_members.hpp"
#include "../../core/weigh.hpp"
#include "../references/erased.hpp"
#include "../references/rule_ref.hpp"
#include "../references/space_ref.hpp"
#include "weigh.hpp"

/// Measure → weigh → mix of one window of n vectors. What a local combination and every stage of a distributed one have in
/// common. Segments that inner products cannot decide are left to recombine.hpp.
namespace adasum::detail {

/// What happened to one segment.
struct segment_outcome {
  std::span<const double> norms;    ///< ‖vector i‖
  std::span<const double> weights;  ///< the result is Σ weights[i]·vector i
  double result_norm;
  bool recombined;  ///< combined vector by vector
};

/// The arrays of one round, for n vectors and a number of segments.
struct round_memory {
  std::size_t n;
  std::span<double> gram;     ///< segments × packed_size(n), as measured (and summed over ranks)
  std::span<double> weights;  ///< segments × n
  std::span<double> norms;    ///< n
  std::span<double> total;    ///< packed_size(n)
  weigh_scratch& scratch;
  std::vector<std::size_t>& unsettled;  ///< the segments that need the vectors themselves, ascending

  std::size_t segments() const { return weights.size() / n; }
  gram_view gram_of(std::size_t k) const { return {gram.data() + k * packed_size(n), n}; }
  std::span<double> weights_of(std::size_t k) const { return weights.subspan(k * n, n); }
};

/// Whether the result of segment k is so short beside the vectors that are added that its square is less than that share of
/// theirs.
inline bool cancels(const round_memory& memory, std::size_t k, double share) {
  const auto gram = memory.gram_of(k);
  const auto weights = memory.weights_of(k);
  double squares = 0;
  for (std::size_t i = 0; i < memory.n; ++i) squares += weights[i] * gram(i, i) * weights[i];
  return squared_norm(gram, weights) < share * squares;
}

/// Is told of each segment that has been combined, by its number, and what happened to it.
using segment_observer = function_ref<void(std::size_t, const segment_outcome&)>;

/// For callers that do not need to know.
inline constexpr auto unobserved = [](std::size_t, const segment_outcome&) {};
inline constexpr auto unobserved_elements = [](index_range) {};

/// Who wants to know which elements of the result have been written, and after how many of them.
struct written_elements {
  std::size_t chunk = std::numeric_limits<std::size_t>::max();
  function_ref<void(index_range)> tell = unobserved_elements;
};

/// Of all vectors together.
inline std::size_t bytes_of(const space_ref& space, std::size_t vectors, segments_view all) {
  return vectors * all.all().size() * space.element_size();
}

/// As accurately as the rule needs it.
inline void measure_for(const rule_ref& rule, const space_ref& space, const slice& window, vector_list vectors,
                        double* gram, std::size_t bytes = 0) {
  if (rule.needs_accurate_gram() && space.measures_in_double())
    space.measure_in_double(window, vectors, gram);
  else
    space.measure(window, vectors, gram, bytes);
}

/// The Gram matrices of one round of `all`, as accurate as the rule needs them.
inline void measure_round(const rule_ref& rule, const space_ref& space, const slice& window, vector_list vectors,
                          double* gram, segments_view all) {
  // Each round is short, but all of them together may be more than the caches hold.
  measure_for(rule, space, window, vectors, gram, bytes_of(space, vectors.size(), all));
  space.fence();
}

/// The sum of all segments' Gram matrices.
inline gram_view add_segments(const round_memory& memory) {
  const auto total = memory.total;
  std::ranges::fill(total, 0.0);
  for (std::size_t k = 0; k < memory.segments(); ++k)
    for (std::size_t e = 0; e < total.size(); ++e) total[e] += memory.gram[k * total.size() + e];
  return {total.data(), memory.n};
}

/// Whether a segment of a gradient is so short that only the vectors tell its norm, though the whole gradient is not: under
/// a rule that weighs the whole model.
inline bool hides_short_segments(const round_memory& memory) {
  for (std::size_t k = 0; k < memory.segments(); ++k)
    for (std::size_t i = 0; i < memory.n; ++i)
      if (const double square = memory.gram_of(k)(i, i); square > 0 && square < smallest_safe_square) return true;
  return false;
}

/// One set of weights for all segments.
inline void copy_first_weights(const round_memory& memory) {
  for (std::size_t k = 1; k < memory.segments(); ++k)
    std::ranges::copy(memory.weights_of(0), memory.weights_of(k).begin());
}

/// Weights of every segment, and which of them are unsettled. A rule for the whole model that needs the vectors leaves
/// "segment" 0 unsettled, which stands for all of them.
/// @param leaf_counts    how many gradients each vector already combines; 0 for one that takes no part
/// @param first_segment  the number of the window's first segment
/// @param limits         see limits_for
/// @param problem        what the rule threw first, if it did. Other ranks, whose rule need not throw, go on to the
///                       unsettled segments: so this one finds out which these are, as far as it can
inline void weigh_window(const rule_ref& rule, std::span<const std::size_t> leaf_counts, std::size_t first_segment,
                         const round_memory& memory, const weighing_limits& limits, std::exception_ptr& problem) {
  memory.unsettled.clear();
  const bool whole_model = rule.weighs_whole_model();
  const std::size_t count = whole_model ? std::min<std::size_t>(memory.segments(), 1) : memory.segments();
  for (std::size_t k = 0; k < count; ++k) {
    if (whole_model && hides_short_segments(memory)) {
      memory.unsettled.push_back(k);
      break;
    }
    const auto gram = whole_model ? add_segments(memory) : memory.gram_of(k);
    auto quality = weighing::good;
    try {
      quality = weigh(rule, gram, leaf_counts, memory.weights_of(k), first_segment + k, memory.scratch, limits);
    } catch (...) {
      if (!problem) problem = std::current_exception();
      std::span<const std::size_t> asked_about;
      quality = decided_beforehand(rule, gram, leaf_counts, limits, memory.scratch, asked_about);
    }
    if (quality == weighing::needs_vectors) memory.unsettled.push_back(k);
  }
  if (whole_model && memory.unsettled.empty()) copy_first_weights(memory);
}

/// Whether there are weights under which vectors that take part cancel beyond a threshold (weighing_limits):
/// whether the Gram matrix of their unit vectors has an eigenvalue below it. By Cholesky's factors, which exist
/// otherwise. @param factors  packed_size(n)
inline bool can_cancel(gram_view gram, double threshold, std::span<double> factors) {
  const auto n = gram.size();
  const auto count = static_cast<double>(n);
  const double shift = threshold + count * count * count * 0x1p-48;  // and what rounding may hide
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      const double norms = std::sqrt(gram(i, i)) * std::sqrt(gram(j, j));
      double entry = i == j ? 1 - shift : norms > 0 ? gram(i, j) / norms : 0;
      for (std::size_t k = 0; k < j; ++k) entry -= factors[packed_index(i, k)] * factors[packed_index(j, k)];
      if (i == j && !(entry > 0)) return true;
      factors[packed_index(i, j)] = i == j ? std::sqrt(entry) : entry / factors[packed_index(j, j)];
    }
  return false;
}

/// Whether the rule may leave segments unsettled, by what is known without asking it: the same on all ranks, on those
/// where it throws, too.
inline bool may_leave_unsettled(const rule_ref& rule, const round_memory& memory, const weighing_limits& limits) {
  const auto may = [&](gram_view gram) {
    return weighing_of_squares(gram, limits.largest_square) == weighing::good &&
           can_cancel(gram, std::max(limits.node, limits.root), memory.scratch.gram);
  };
  if (rule.weighs_whole_model()) return memory.segments() > 0 && may(add_segments(memory));
  for (std::size_t k = 0; k < memory.segments(); ++k)
    if (may(memory.gram_of(k))) return true;
  return false;
}

/// What the Gram matrix says of segment k, once its weights are there.
inline segment_outcome outcome_of(const round_memory& memory, std::size_t k) {
  const auto gram = memory.gram_of(k);
  for (std::size_t i = 0; i < memory.n; ++i) memory.norms[i] = std::sqrt(gram.row(i)[i]);
  return {memory.norms, memory.weights_of(k), std::sqrt(squared_norm(gram, memory.weights_of(k))), false};
}

/// visit(k) for each segment that is settled. @param skip_all  whether unsettled segment 0 stands for all of them
template <class Visitor>
void for_each_settled(const round_memory& memory, bool skip_all, const Visitor& visit) {
  if (skip_all && !memory.unsettled.empty()) return;
  auto unsettled = memory.unsettled.begin();
  for (std::size_t k = 0; k < memory.segments(); ++k)
    if (unsettled != memory.unsettled.end() && *unsettled == k)
      ++unsettled;
    else
      visit(k);
}

/// visit(first, last) for the segments [first, last) that are settled and consecutive.
inline void for_each_settled_run(const round_memory& memory, function_ref<void(std::size_t, std::size_t)> visit) {
  std::size_t begin_of_run = 0;
  const auto end_run = [&](std::size_t end) {
    if (begin_of_run != end) visit(begin_of_run, end);
    begin_of_run = end + 1;
  };
  for (const std::size_t k : memory.unsettled) end_run(k);
  end_run(memory.segments());
}

/// Mixes the segments that are settled, as long as they are consecutive in one call each. Segments whose result is much
/// shorter than its terms are mixed in double. (Under a pairwise rule, such segments are not settled.)
/// @param written   written(range) after each at most written.chunk elements of out, counted from the origin
/// @param bytes     of all vectors together, if the window is a part of a larger one; else 0
inline void mix_window(const space_ref& space, const rule_ref& rule, const slice& window, vector_list vectors,
                       const round_memory& memory, std::byte* out, const written_elements& written = {},
                       std::size_t bytes = 0) {
  if (rule.weighs_whole_model() && !memory.unsettled.empty()) return;
  const auto mix_run = [&](std::size_t first, std::size_t last, bool accurately) {
    const auto part = window.part(first, last - first);
    const double* const weights = memory.weights.data() + first * memory.n;
    const std::size_t chunk = std::min(written.chunk, part.range.size());
    for (std::size_t begin = part.range.begin; begin < part.range.end; begin += chunk) {
      const auto end = begin + std::min(chunk, part.range.end - begin);
      const slice some{part.segments, {begin, end}, part.origin};
      if (accurately)
        mix_accurately(space, some, vectors, weights, out);
      else
        space.mix(some, vectors, weights, out, bytes);
      written.tell(index_range{begin - part.origin, end - part.origin});
    }
  };
  for_each_settled_run(memory, [&](std::size_t first, std::size_t last) {
    bool accurately = false;
    // Spaces may mix two vectors in narrower numbers than more of them.
    if (!rule.is_pairwise() && space.mixes_in_double())
      for (auto k = first; memory.n == 2 && k < last; ++k) {
        const bool cancels = detail::cancels(memory, k, limits_for(space.format(), 2, true).root);
        if (k > first && cancels != accurately) mix_run(std::exchange(first, k), k, accurately);
        accurately = cancels;
      }
    mix_run(first, last, accurately);
  });
}

}  // namespace adasum::detail
