// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <adasum/version.hpp>

#include <cmath>
#include <vector>

#ifdef PACKAGE_VERSION_MAJOR
static_assert(adasum::version_major == PACKAGE_VERSION_MAJOR && adasum::version_minor == PACKAGE_VERSION_MINOR &&
              adasum::version_patch == PACKAGE_VERSION_PATCH);
#endif

/// Whether this is the adaptive sum of {4, 5, 6, 7} and {8, 9, 10, 11}, to the digits that are published.
inline bool is_expected(const std::vector<float>& result) {
  const std::vector<double> expected{6.2643, 7.1228, 7.9812, 8.8397};
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (!(std::abs(result.at(i) - expected[i]) < 1e-4)) return false;
  return result.size() == expected.size();
}
