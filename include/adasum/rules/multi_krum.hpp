// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <cstddef>
#include <span>
#include <string_view>

#include "../core/gram.hpp"

namespace adasum::rules {

/// The mean of the m gradients that lie closest to their neighbours. Up to f ranks may send anything, even Inf and NaN: a
/// gradient that holds these is left out, and n is then the number of the others.
///
///     score(i) = Σ of the n - f - 2 smallest ‖gᵢ - gⱼ‖², j ≠ i;     cᵢ = 1/m for the m lowest scores, 0 for the others
///
/// The guarantee, for n ≥ 2f + 3 ranks and m ≤ n - f: each of the m gradients scores no worse than the worst honest one, and
/// at least two of the neighbours that count for its score are honest. So it lies about as near to honest gradients as these
/// lie to each other. The paper proves more for m = 1.
///
/// Other numbers are accepted, but without this guarantee. m is limited to 1 … n. The nearest neighbour always counts,
/// and it alone where n ≤ f + 3 (f + 2 with neighbourhood::byzfl). The two gradients nearest to each other have the
/// same score then, and of equal scores the lower index wins: of two gradients, the first is taken. With m > n - f, one
/// of the f gradients may be among those taken, whatever it is, unless it was left out.
///
/// Other implementations add up one neighbour more, or distances that are not squared: `neighbours` and `distance`.
/// Distances have a relative error of about 1e-8, however large a part all gradients have in common: where inner products do
/// not give them, differences are measured (gram_view::squared_distance), also those of equal gradients. The choice jumps where
/// two scores are equal; once it is made, the result has the errors of a mean.
///
/// Source: Blanchard et al., "Machine Learning with Adversaries: Byzantine Tolerant Gradient Descent", NeurIPS 2017,
/// sections 3 and 4.
struct multi_krum {
  static constexpr std::string_view name = "multi_krum";
  static constexpr bool leaves_out_nonfinite = true;
  static constexpr inner_products needs = inner_products::distances;

  /// How many neighbours' distances are added up.
  enum class neighbourhood {
    krum,   ///< n - f - 2, as in the paper
    byzfl,  ///< n - f - 1, as in the library ByzFL
  };
  /// Which distances are added up.
  enum class metric {
    squared,  ///< ‖gᵢ - gⱼ‖², as in the paper
    plain,    ///< ‖gᵢ - gⱼ‖
  };

  std::size_t byzantine = 0;  ///< f; at most (n - 3)/2 for what is promised
  std::size_t selected = 1;   ///< m; 1 is Krum; at most n - f for what is promised
  bool per_segment = false;   ///< choose for each segment by itself, instead of for the whole model

  neighbourhood neighbours = neighbourhood::krum;  ///< how many neighbours count
  metric distance = metric::squared;               ///< how far each is

  auto parameters() const { return parameter_list(byzantine, selected, per_segment, neighbours, distance); }
  bool whole_model() const { return !per_segment; }

  void operator()(gram_view g, std::span<double> weights) const;

 private:
  double between(gram_view g, std::size_t i, std::size_t j) const;
};

}  // namespace adasum::rules

#if ADASUM_DEFINITIONS
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "orders.hpp"

namespace adasum::rules {

ADASUM_INLINE void multi_krum::operator()(gram_view g, std::span<double> weights) const {
  const auto n = g.size();
  const auto m = std::clamp<std::size_t>(selected, 1, n);
  // At least the nearest neighbour counts, where there is one.
  const std::size_t others = neighbours == neighbourhood::krum ? 2 : 1;
  const auto counted = n < 2 ? 0 : std::max<std::size_t>(1, n > byzantine + others ? n - byzantine - others : 0);
  std::vector<double> score(n), distances;
  for (std::size_t i = 0; i < n; ++i) {
    distances.clear();
    for (std::size_t j = 0; j < n; ++j)
      if (j != i) distances.push_back(between(g, i, j));
    std::sort(distances.begin(), distances.end());
    score[i] = std::accumulate(distances.begin(), distances.begin() + static_cast<std::ptrdiff_t>(counted), 0.0);
  }
  const auto order = ascending_order(score);
  std::fill(weights.begin(), weights.end(), 0.0);
  for (std::size_t k = 0; k < m; ++k) weights[order[k]] = 1 / static_cast<double>(m);
}

ADASUM_INLINE double multi_krum::between(gram_view g, std::size_t i, std::size_t j) const {
  const double square = g.squared_distance(i, j);
  return distance == metric::squared ? square : std::sqrt(square);
}

}  // namespace adasum::rules
#endif
