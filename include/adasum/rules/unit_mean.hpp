// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <cstddef>
#include <span>
#include <string_view>

#include "../core/gram.hpp"

namespace adasum::rules {

/// The mean of unit gradients: cᵢ = 1 / (n‖gᵢ‖), 0 for a zero gradient. The length of the result is at most 1, whatever
/// the gradients' scale. Rules that mix unit vectors (adacons) are compared with it. The error of the result is about
/// 1e-15, whatever the gradients. A control, from no paper. No parameters.
struct unit_mean {
  static constexpr std::string_view name = "unit_mean";

  int degree() const { return 0; }

  void operator()(gram_view g, std::span<double> weights) const;
};

}  // namespace adasum::rules

#if ADASUM_DEFINITIONS
#include <cmath>

namespace adasum::rules {

ADASUM_INLINE void unit_mean::operator()(gram_view g, std::span<double> weights) const {
  const auto n = static_cast<double>(g.size());
  for (std::size_t i = 0; i < g.size(); ++i) weights[i] = g(i, i) > 0 ? 1 / (n * std::sqrt(g(i, i))) : 0;
}

}  // namespace adasum::rules
#endif
