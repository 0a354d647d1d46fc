// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <vector>

/// What one translation unit makes of the library.
struct reductions {
  bool checked_by_default;
  std::vector<std::vector<double>> results;
};

reductions with_assertions();
reductions without_assertions();
