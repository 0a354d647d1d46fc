// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>

#include "attempt.hpp"
#include "combine_directly.hpp"
#include "concepts.hpp"
#include "weigh.hpp"

/// Weigh → mix of one window of n vectors whose Gram matrices have been measured. What a local combination and every
/// level of a distributed one have in common.
namespace adasum::detail {

/// What happened to one segment.
struct segment_outcome {
  std::span<const double> norms;    ///< ‖vector i‖
  std::span<const double> weights;  ///< the result is Σ weights[i]·vector i
  double result_norm;
  bool direct;  ///< combined vector by vector
};

/// For callers that want no outcomes.
struct no_observer {};

/// The arrays of one round, for n vectors and a number of segments.
struct round_memory {
  std::span<double> gram;     ///< segments × packed_size(n), as measured (and summed over ranks)
  std::span<double> weights;  ///< segments × n
  std::span<double> norms;    ///< n
  std::span<double> total;    ///< packed_size(n)
  weigh_scratch& scratch;
};

/// For callers that do not need to know when elements have been written.
struct written_anywhere {
  static constexpr std::size_t chunk = std::numeric_limits<std::size_t>::max();
  void operator()(index_range) const {}
};

/// Whether one set of weights serves all segments.
template <rule Rule>
bool weighs_whole_model(const Rule& rule) {
  if constexpr (requires { rule.whole_model(); })
    return rule.whole_model();
  else
    return false;
}

/// The sum of all segments' Gram matrices.
inline gram_view add_segments(std::size_t n, std::size_t segments, const round_memory& memory) {
  const auto total = memory.total;
  std::ranges::fill(total, 0.0);
  for (std::size_t k = 0; k < segments; ++k)
    for (std::size_t e = 0; e < total.size(); ++e) total[e] += memory.gram[k * total.size() + e];
  return {total.data(), n};
}

/// @param leaves          how many gradients each vector already combines; 0 for one that takes no part
/// @param first_segment   the number of the window's first segment
/// @param sum_over_ranks  adds inner products over the ranks that hold the rest of the vectors (combine_directly)
/// @param observe         observe(k, segment_outcome) for each segment of the window's view, in order; or no_observer
/// @param written         written(range) after each at most written.chunk elements of out, counted from the origin
/// @throws what a rule or the space threw, once all sums over the ranks have been made
template <scalar T, execution_space<T> Space, rule Rule, class Sum, class Observer, class Written = written_anywhere>
void weigh_and_mix(const Space& space, Rule& rule, const slice& window, std::span<const T* const> vectors,
                   std::span<const std::size_t> leaves, std::size_t first_segment, T* out, const round_memory& memory,
                   Sum&& sum_over_ranks, Observer&& observe, Written&& written = {}) {
  constexpr bool observed = !std::is_same_v<std::remove_cvref_t<Observer>, no_observer>;
  const std::size_t n = vectors.size(), count = window.segments.size();
  const auto gram_of = [&](std::size_t k) { return gram_view(memory.gram.data() + k * packed_size(n), n); };
  const auto weights_of = [&](std::size_t k) { return memory.weights.subspan(k * n, n); };
  attempt run;

  const auto weigh_one = [&](gram_view gram, std::size_t k) {
    auto quality = weighing_of_squares(gram);
    run.even_after_failure([&] {
      quality = weigh(rule, gram, leaves, weights_of(k), first_segment + k, memory.scratch, cancellation_threshold<T>);
    });
    return quality;
  };
  const auto combine_piece = [&](std::size_t k, index_range piece) {
    auto result = combine_directly<T>(space, run, rule, vectors, leaves, piece, first_segment + k, out, sum_over_ranks);
    if (!piece.empty()) run([&] { written(piece); });
    return result;
  };
  const bool whole_model = weighs_whole_model(rule);
  auto quality = weighing::good;
  if (whole_model) {
    quality = weigh_one(add_segments(n, count, memory), 0);
    if (quality == weighing::direct) {
      const auto result = combine_piece(0, {window.range.begin - window.origin, window.range.end - window.origin});
      std::ranges::copy(result.weights, memory.weights.begin());
    }
    for (std::size_t k = 1; k < count; ++k) std::ranges::copy(weights_of(0), weights_of(k).begin());
  }

  // Segments that the Gram matrix decides are mixed in runs, as long as they are consecutive.
  std::size_t begin_of_run = 0;
  const auto mix_run = [&](std::size_t last) {
    const auto first = std::exchange(begin_of_run, last);
    if (first == last) return;
    const auto part = window.part(first, last - first);
    const std::size_t chunk = std::min(written.chunk, part.range.size());
    for (std::size_t begin = part.range.begin; begin < part.range.end; begin += chunk) {
      const auto end = begin + std::min(chunk, part.range.end - begin);
      space.mix({part.segments, {begin, end}, part.origin}, vectors, memory.weights.data() + first * n, out);
      written(index_range{begin - part.origin, end - part.origin});
    }
  };
  for (std::size_t k = 0; k < count; ++k) {
    if (!whole_model) quality = weigh_one(gram_of(k), k);
    if (quality == weighing::direct && !whole_model) {
      run([&] { mix_run(k); });
      begin_of_run = k + 1;
      const auto result = combine_piece(k, window.local(k));
      if constexpr (observed)
        run([&] { observe(k, segment_outcome{result.norms, result.weights, result.result_norm, true}); });
    } else if constexpr (observed) {
      run([&] {
        const auto weights = weights_of(k);
        for (std::size_t i = 0; i < n; ++i) memory.norms[i] = std::sqrt(gram_of(k)(i, i));
        observe(k, segment_outcome{memory.norms, weights, std::sqrt(squared_norm(gram_of(k), weights)),
                                   quality == weighing::direct});
      });
    }
  }
  if (!(whole_model && quality == weighing::direct)) run([&] { mix_run(count); });
  run.rethrow();
}

}  // namespace adasum::detail
