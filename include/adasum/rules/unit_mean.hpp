// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <cstddef>
#include <span>
#include <string_view>

#include "../core/row_sums.hpp"

namespace adasum::rules {

/// The mean of unit gradients: cᵢ = 1 / (n‖gᵢ‖), 0 for a zero gradient. The length of the result is at most 1, whatever
/// the gradients' scale. Rules that mix unit vectors (adacons) are compared with it. It needs norms alone: among many ranks
/// it runs by one sum of vectors (core/concepts.hpp, row_sum_rule). The error of the result is about 1e-15, whatever the
/// gradients. A control, from no paper. No parameters.
struct unit_mean {
  static constexpr std::string_view name = "unit_mean";
  static constexpr bool needs_row_sums = false;

  int degree() const { return 0; }

  void operator()(row_sums_view g, std::span<double> weights) const {
    const auto n = static_cast<double>(g.size());
    for (std::size_t i = 0; i < g.size(); ++i) weights[i] = g.norm(i) > 0 ? 1 / (n * g.norm(i)) : 0;
  }
};

}  // namespace adasum::rules
