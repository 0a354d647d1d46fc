// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <vector>

#include <adasum/core/segments.hpp>

/// `total` cut into nearly equal parts.
inline adasum::segments even_segments(std::size_t total, std::size_t parts) {
  std::vector<std::size_t> lengths;
  for (std::size_t k = 0; k < parts; ++k) lengths.push_back(total * (k + 1) / parts - total * k / parts);
  return adasum::segments(lengths);
}
