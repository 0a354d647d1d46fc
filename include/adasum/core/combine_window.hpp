// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <type_traits>

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
  weigh_scratch& scratch;
};

/// @param leaves          how many gradients each vector already combines
/// @param sum_over_ranks  adds inner products over the ranks that hold the rest of the vectors (combine_directly)
/// @param observe         observe(k, segment_outcome) for each segment of the window's view, in order; or no_observer
template <scalar T, execution_space<T> Space, rule Rule, class Sum, class Observer>
void weigh_and_mix(const Space& space, Rule& rule, const slice& window, std::span<const T* const> vectors,
                   std::span<const std::size_t> leaves, T* out, const round_memory& memory, Sum&& sum_over_ranks,
                   Observer&& observe) {
  constexpr bool observed = !std::is_same_v<std::remove_cvref_t<Observer>, no_observer>;
  const std::size_t n = vectors.size(), count = window.segments.size();
  const auto weights_of = [&](std::size_t k) { return memory.weights.subspan(k * n, n); };

  // Segments that the Gram matrix decides are mixed in runs, as long as they are consecutive.
  std::size_t run = 0;
  const auto mix_run = [&](std::size_t last) {
    if (run != last)
      space.template mix<T>(window.part(run, last - run), vectors, memory.weights.data() + run * n, out);
    run = last;
  };
  for (std::size_t k = 0; k < count; ++k) {
    const gram_view gram(memory.gram.data() + k * packed_size(n), n);
    const auto weights = weights_of(k);
    const auto quality = weigh(rule, gram, leaves, weights, memory.scratch);
    if (quality == weighing::direct) {
      mix_run(k);
      run = k + 1;
      const auto result = combine_directly<T>(space, rule, vectors, leaves, window.local(k), out, sum_over_ranks);
      if constexpr (observed) observe(k, segment_outcome{result.norms, result.weights, result.result_norm, true});
    } else if constexpr (observed) {
      for (std::size_t i = 0; i < n; ++i) memory.norms[i] = std::sqrt(gram(i, i));
      observe(k, segment_outcome{memory.norms, weights, std::sqrt(squared_norm(gram, weights)), false});
    }
  }
  mix_run(count);
}

}  // namespace adasum::detail
