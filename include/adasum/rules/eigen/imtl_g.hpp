// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "spectrum.hpp"

namespace adasum::rules {

/// The affine combination whose projections onto all gradients have one length: v = D⁻¹ R⁺ 1, c = v / Σv, where
/// G = D R D and D holds the gradients' lengths. (v = G⁻¹ √diag G, if G is regular.)
///
/// Source: Liu et al., "Towards Impartial Multi-task Learning", ICLR 2021, section 3.2 (IMTL-G), with the pseudo-inverse
/// of the directions R for dependent gradients. Where Σv is no more than `guard`·Σ|v|, there is no such combination of
/// reasonable length: the mean is taken, and counted. A zero gradient has weight 0. The relative error of the weights is
/// about 1e-15 times the condition number of R, its zero eigenvalues left out. Needs Eigen.
struct imtl_g {
  static constexpr std::string_view name = "imtl_g";
  static constexpr bool needs_accurate_gram = true;

  double guard = 1e-6;
  std::size_t fallbacks = 0;  ///< how often the mean was taken instead

  std::array<double, 1> parameters() const { return {guard}; }

  void operator()(gram_view g, std::span<double> weights) {
    const scaled_gram scaled(g);
    const auto n = scaled.lengths.size();
    Eigen::VectorXd v =
        spectrum(scaled.directions).apply([](double lambda) { return 1 / lambda; }, Eigen::VectorXd::Ones(n));
    for (Eigen::Index i = 0; i < n; ++i) v(i) = scaled.lengths(i) > 0 ? v(i) / scaled.lengths(i) : 0;
    const bool usable = v.sum() > guard * v.cwiseAbs().sum();
    if (!usable) ++fallbacks;
    for (Eigen::Index i = 0; i < n; ++i)
      weights[static_cast<std::size_t>(i)] = usable ? v(i) / v.sum() : 1 / static_cast<double>(n);
  }
};

}  // namespace adasum::rules
