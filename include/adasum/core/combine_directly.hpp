// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "attempt.hpp"
#include "concepts.hpp"
#include "gram.hpp"
#include "scalar.hpp"
#include "tree_order.hpp"
#include "weigh.hpp"

/// One segment combined on the vectors themselves, where its Gram matrix alone does not suffice (weighing::direct):
/// because a subtree cancels, or because squares leave the range of double. Rare, so it allocates what it needs.
///
/// All ranks that hold parts of the segment call it together; `sum_over_ranks(span<double>)` adds their partial inner
/// products. They take every decision from those sums, so they take the same ones. How many sums there are depends on
/// the numbers: a rank on which something fails takes part in all of them, with NaN for what it does not know, and says
/// so afterwards (attempt).
namespace adasum::detail {

/// Copies of one segment's piece of n vectors, to be combined in place.
template <scalar T, execution_space<T> Space>
class piece_copies {
 public:
  piece_copies(const Space& space, attempt& run, std::span<const T* const> vectors, index_range piece)
      : space_(space), run_(run), length_(piece.size()), offsets_{0, length_} {
    run_([&] {
      memory_.emplace(space_.template allocate<T>(vectors.size() * length_));
      for (std::size_t i = 0; i < vectors.size(); ++i) space_.copy(vectors[i] + piece.begin, at(i), length_);
    });
  }
  piece_copies(const piece_copies&) = delete;
  piece_copies& operator=(const piece_copies&) = delete;

  T* at(std::size_t i) { return memory_ ? memory_->data() + i * length_ : nullptr; }

  /// v ← 2^exponent · v, in steps that a double can hold.
  void scale(T* v, int exponent) const {
    while (exponent != 0) {
      const int step = std::clamp(exponent, -1000, 1000);
      const double factor = std::ldexp(1.0, step);
      const T* const in = v;
      mix(std::span(&in, 1), &factor, v);
      exponent -= step;
    }
  }

  template <class Sum>
  void measure(std::span<const T* const> vectors, std::span<double> gram, Sum& sum_over_ranks) const {
    run_([&] {
      space_.measure(window(), vectors, gram.data());
      space_.fence();
    });
    if (run_.failed()) std::ranges::fill(gram, length_ == 0 ? 0.0 : std::numeric_limits<double>::quiet_NaN());
    sum_over_ranks(gram);
  }

  void mix(std::span<const T* const> vectors, const double* weights, T* out) const {
    run_([&] { space_.mix(window(), vectors, weights, out); });
  }

 private:
  slice window() const { return whole(segments_view{offsets_}); }

  const Space& space_;
  attempt& run_;
  std::size_t length_;
  std::array<std::size_t, 2> offsets_;
  std::optional<decltype(std::declval<const Space&>().template allocate<T>(0))> memory_;
};

/// Norms and weights of one direct combination of n vectors.
struct direct_result {
  explicit direct_result(std::size_t n) : norms(n), weights(n, 1), terms(n) {}
  std::vector<double> norms;
  std::vector<double> weights;
  std::vector<double> terms;  ///< |weights[i]|·norms[i], also where the weight is out of double's range
  double result_norm = 0;
};

/// Combines vectors[i], which it may rescale, into vectors[0], whatever the range of their norms.
///
/// Vectors whose squares leave double's range are multiplied by powers of two, so that the largest norm comes near 1
/// and, under a pairwise rule, no other is below 2⁻¹⁰⁰. Such a smaller one has been enlarged, which changes the result
/// by less than its rounding: of so small a vector, only the direction counts. Other rules may choose it, so they see
/// it as small as it is; where even its square vanishes, as zero.
///
/// @param lift    the binary exponent below the largest norm at which vectors are enlarged
/// @param noise   the norm up to which a vector is nothing but rounding errors, and is weighed as zero
/// @param degree  how the result follows the vectors' scale (degree_of)
template <scalar T, execution_space<T> Space, class Sum, class Weigh>
direct_result combine_any_range(attempt& run, const piece_copies<T, Space>& copies, std::span<T* const> vectors,
                                std::span<const double> noise, Sum& sum_over_ranks, int degree, int lift,
                                Weigh&& weigh_gram) {
  const auto n = vectors.size();
  const std::vector<const T*> inputs(vectors.begin(), vectors.end());
  std::vector<double> gram(packed_size(n));
  const auto square = [&](std::size_t i) { return gram[packed_index(i, i)]; };
  const auto rescale = [&](const std::vector<int>& by) {
    for (std::size_t i = 0; i < n; ++i) copies.scale(vectors[i], by[i]);
    copies.measure(inputs, gram, sum_over_ranks);
  };

  copies.measure(inputs, gram, sum_over_ranks);
  std::vector<int> exponent(n, 0);  // vectors[i] now holds 2^exponent[i] times what it was
  for (std::size_t i = 0; i < n; ++i)
    exponent[i] = square(i) > largest_safe_square ? -600 : square(i) < smallest_safe_square && square(i) > 0 ? 600 : 0;
  const bool rescaled = std::ranges::any_of(exponent, [](int e) { return e != 0; });
  if (rescaled) rescale(exponent);

  direct_result result(n);
  bool finite = true;
  int largest = std::numeric_limits<int>::min();
  std::vector<int> magnitude(n, 0);  // the binary exponent of each vector's norm
  for (std::size_t i = 0; i < n; ++i) {
    result.norms[i] = std::ldexp(std::sqrt(square(i)), -exponent[i]);
    finite &= std::isfinite(square(i));
    if (!finite || square(i) == 0) continue;
    magnitude[i] = std::ilogb(std::sqrt(square(i))) - exponent[i];
    largest = std::max(largest, magnitude[i]);
  }
  if (!finite) {
    constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
    std::ranges::fill(result.weights, unknown);
    std::ranges::fill(result.terms, unknown);
    result.result_norm = unknown;
    copies.mix(inputs, result.weights.data(), vectors[0]);
    return result;
  }

  std::vector<int> wanted(n, 0);
  if (rescaled) {
    std::vector<int> by(n, 0);
    for (std::size_t i = 0; i < n; ++i) {
      if (square(i) == 0) continue;
      wanted[i] = -largest + std::max(0, largest - magnitude[i] - lift);
      by[i] = wanted[i] - exponent[i];
    }
    rescale(by);
  }
  const auto is_noise = [&](std::size_t i) { return noise[i] > 0 && result.norms[i] <= noise[i]; };
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j)
      if (is_noise(i)) gram[packed_index(std::max(i, j), std::min(i, j))] = 0;
  run([&] { weigh_gram(gram_view{gram.data(), n}, std::span(result.weights)); });
  for (std::size_t i = 0; i < n; ++i)
    if (is_noise(i)) result.weights[i] = 0;
  const double scaled_norm = std::sqrt(squared_norm({gram.data(), n}, result.weights));
  copies.mix(inputs, result.weights.data(), vectors[0]);
  const int back = rescaled ? degree * largest : 0;
  copies.scale(vectors[0], back);
  result.result_norm = std::ldexp(scaled_norm, back);
  for (std::size_t i = 0; i < n; ++i) {
    result.terms[i] = std::ldexp(std::abs(result.weights[i]) * std::sqrt(square(i)), back);
    result.weights[i] = std::ldexp(result.weights[i], back + wanted[i]);
  }
  return result;
}

/// The same along the tree of a pairwise rule, pair by pair.
///
/// A node whose terms cancel keeps their rounding errors, and however small they are, the next pair would take their
/// direction for that of a gradient. So each node knows how large they can be: one rounding of each term and of the
/// sum, and a few of double in the weights.
template <scalar T, execution_space<T> Space, pairwise_rule Rule, class Sum>
direct_result combine_along_tree(attempt& run, piece_copies<T, Space>& copies, Rule& rule,
                                 std::span<const std::size_t> leaves, Sum& sum_over_ranks) {
  constexpr double rounding = 2 * unit_roundoff(format_of<T>) + 8 * unit_roundoff(number_format::binary64);
  const auto n = leaves.size();
  direct_result result(n);
  std::vector<std::size_t> count(leaves.begin(), leaves.end());
  std::vector<double> noise(n, 0);  // of the node that begins at a leaf
  for_each_merge_under<Rule>(n, [&](std::size_t first, std::size_t middle, std::size_t last) {
    T* const pair[] = {copies.at(first), copies.at(middle)};
    const double noise_of_pair[] = {noise[first], noise[middle]};
    const auto merged = combine_any_range<T>(
        run, copies, pair, noise_of_pair, sum_over_ranks, degree_of(rule), 100, [&](gram_view g, std::span<double> w) {
          const auto found = rule(pair_gram{g(0, 0), g(1, 0), g(1, 1), count[first], count[middle]});
          w[0] = found.a;
          w[1] = found.b;
        });
    for (auto i = first; i < middle; ++i) result.weights[i] *= merged.weights[0];
    for (auto i = middle; i < last; ++i) result.weights[i] *= merged.weights[1];
    if (middle == first + 1) result.norms[first] = merged.norms[0];
    if (last == middle + 1) result.norms[middle] = merged.norms[1];
    result.result_norm = merged.result_norm;
    count[first] += count[middle];
    if constexpr (needs_gram<Rule>) {
      const auto kept = [&](std::size_t i) {
        return merged.terms[i] > 0 ? merged.terms[i] * std::min(1.0, noise_of_pair[i] / merged.norms[i]) : 0;
      };
      noise[first] = kept(0) + kept(1) + rounding * std::hypot(merged.terms[0], merged.terms[1]);
    }
  });
  if constexpr (needs_gram<Rule>) {  // others will combine this result further
    const T* const root = copies.at(0);
    double square = 0;
    copies.measure(std::span(&root, 1), std::span(&square, 1), sum_over_ranks);
    if (std::sqrt(square) <= noise[0]) {
      constexpr double zero = 0;
      copies.mix(std::span(&root, 1), &zero, copies.at(0));
      result.result_norm = 0;
    }
  }
  return result;
}

/// Combines the elements `piece` of n vectors into out[piece.begin …].
///
/// @param run      keeps what fails; the result means nothing then
/// @param leaves   how many gradients each vector already combines; 0 for one that takes no part
/// @param segment  its number, for rules that keep state
template <scalar T, execution_space<T> Space, rule Rule, class Sum>
direct_result combine_directly(const Space& space, attempt& run, Rule& rule, std::span<const T* const> vectors,
                               std::span<const std::size_t> leaves, index_range piece, std::size_t segment, T* out,
                               Sum sum_over_ranks) {
  const auto n = vectors.size();
  piece_copies<T, Space> copies(space, run, vectors, piece);
  const auto all_at_once = [&] {
    std::vector<T*> all(n);
    for (std::size_t i = 0; i < n; ++i) all[i] = copies.at(i);
    const std::vector<double> noise(n, 0);
    constexpr int never = std::numeric_limits<int>::max() / 2;
    return combine_any_range<T>(run, copies, all, noise, sum_over_ranks, degree_of(rule), never,
                                [&](gram_view g, std::span<double> w) {
                                  if constexpr (pairwise_rule<Rule>) {
                                    w[0] = 1;
                                  } else {
                                    weigh_scratch scratch(n);
                                    weigh_all_at_once(rule, g, leaves, w, segment, scratch);
                                  }
                                });
  };
  auto result = [&] {
    if constexpr (pairwise_rule<Rule>)
      if (n > 1) return combine_along_tree<T>(run, copies, rule, leaves, sum_over_ranks);
    return all_at_once();
  }();
  run([&] {
    space.copy(static_cast<const T*>(copies.at(0)), out + piece.begin, piece.size());
    space.fence();
  });
  return result;
}

}  // namespace adasum::detail
