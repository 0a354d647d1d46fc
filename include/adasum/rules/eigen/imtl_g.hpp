// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string_view>

#include "spectrum.hpp"

namespace adasum::rules {

/// The affine combination whose projections onto all gradients have one length: v = G⁺ √diag G, c = v / Σv.
///
/// Source: Liu et al., "Towards Impartial Multi-task Learning", ICLR 2021, section 3.2 (IMTL-G), with the
/// pseudo-inverse for dependent gradients. Where Σv is no more than `guard`·Σ|v|, there is no such combination of
/// reasonable length: the mean is taken, and counted. Needs Eigen.
struct imtl_g {
  static constexpr std::string_view name = "imtl_g";

  double guard = 1e-6;
  std::size_t fallbacks = 0;  ///< how often the mean was taken instead

  void operator()(gram_view g, std::span<double> weights) {
    const auto n = static_cast<Eigen::Index>(g.size());
    Eigen::VectorXd norms(n);
    for (Eigen::Index i = 0; i < n; ++i)
      norms(i) = std::sqrt(g(static_cast<std::size_t>(i), static_cast<std::size_t>(i)));
    const Eigen::VectorXd v = gram_spectrum(g).apply([](double lambda) { return 1 / lambda; }, norms);
    const bool usable = v.sum() > guard * v.cwiseAbs().sum();
    if (!usable) ++fallbacks;
    for (Eigen::Index i = 0; i < n; ++i)
      weights[static_cast<std::size_t>(i)] = usable ? v(i) / v.sum() : 1 / static_cast<double>(n);
  }
};

}  // namespace adasum::rules
