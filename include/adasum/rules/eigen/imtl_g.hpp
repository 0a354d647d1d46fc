// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <span>
#include <string_view>

#include "spectrum.hpp"

namespace adasum::rules {

/// The affine combination whose projections onto all gradients have the same length: v = D⁻¹ R⁺ 1, c = v / Σv, where
/// G = D R D and D holds the gradients' lengths. (v = G⁻¹ √diag G, if G is regular.)
///
/// Source: Liu et al., "Towards Impartial Multi-task Learning", ICLR 2021, section 3.2 (IMTL-G), with the pseudo-inverse
/// of the directions R for dependent gradients. Where Σv is no more than `guard`·Σ|v|, or ‖R R⁺ 1‖ no more than
/// `guard`·√n (as many g as -g), there is no such combination of reasonable length: the mean is taken, and counted. A zero
/// gradient has weight 0. The error of the result, relative to Σ|cᵢ|‖gᵢ‖, is about 1e-15 n κ (1 + Σ|v|/Σv), κ being the
/// condition number of R, its zero eigenvalues left out. Needs Eigen.
struct imtl_g {
  static constexpr std::string_view name = "imtl_g";
  static constexpr inner_products needs = inner_products::accurate;

  double guard = 1e-6;        ///< the mean is taken where Σv ≤ guard·Σ|v|, or ‖R R⁺ 1‖ ≤ guard·√n
  std::size_t fallbacks = 0;  ///< how often the mean was taken instead

  auto parameters() const { return parameter_list(guard); }

  void operator()(gram_view g, std::span<double> weights) {
    const scaled_gram scaled(g);
    const auto n = scaled.lengths.size();
    const spectrum eigen(scaled.directions);
    const Eigen::VectorXd ones = (scaled.lengths.array() > 0).cast<double>();
    const Eigen::VectorXd projections = eigen.apply([](double) { return 1; }, ones);  // R R⁺ 1
    Eigen::VectorXd v = eigen.apply([](double lambda) { return 1 / lambda; }, ones);
    for (Eigen::Index i = 0; i < n; ++i) v(i) = scaled.lengths(i) > 0 ? v(i) / scaled.lengths(i) : 0;
    const bool usable = projections.norm() > guard * ones.norm() && v.sum() > guard * v.cwiseAbs().sum();
    if (!usable) ++fallbacks;
    for (Eigen::Index i = 0; i < n; ++i)
      weights[static_cast<std::size_t>(i)] = usable ? v(i) / v.sum() : 1 / static_cast<double>(n);
  }
};

}  // namespace adasum::rules
