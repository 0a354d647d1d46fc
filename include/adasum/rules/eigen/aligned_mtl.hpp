// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cmath>
#include <cstddef>
#include <span>
#include <string_view>

#include "spectrum.hpp"

namespace adasum::rules {

/// The mean of the gradients after their principal components have been made equally long:
///
///     c = √λ_min V Λ^-½ Vᵀ (1/n),   G = V Λ Vᵀ,   λ_min the smallest eigenvalue that is not zero
///
/// Source: Senushkin et al., "Independent Component Alignment for Multi-Task Learning", CVPR 2023, section 4
/// (Aligned-MTL). The result is 0 if all gradients are 0. Needs Eigen.
struct aligned_mtl {
  static constexpr std::string_view name = "aligned_mtl";

  void operator()(gram_view g, std::span<double> weights) const {
    const auto n = static_cast<Eigen::Index>(g.size());
    const gram_spectrum spectrum(g);
    const double least = spectrum.first < n ? spectrum.values(spectrum.first) : 0;
    const Eigen::VectorXd mean = Eigen::VectorXd::Constant(n, 1 / static_cast<double>(n));
    const Eigen::VectorXd c = spectrum.apply([&](double lambda) { return std::sqrt(least / lambda); }, mean);
    for (Eigen::Index i = 0; i < n; ++i) weights[static_cast<std::size_t>(i)] = c(i);
  }
};

}  // namespace adasum::rules
