// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <initializer_list>
#include <vector>

namespace adasum::test {

/// for (const std::size_t n : sizes{1, 2, 3}): no integer is converted on the way.
using sizes = std::initializer_list<std::size_t>;

/// What a loop goes through: all, or, under a sanitizer, where each takes ten times as long, few of them.
template <class T = int>
std::vector<T> few_or_all([[maybe_unused]] std::vector<T> few, [[maybe_unused]] std::vector<T> all) {
#ifdef ADASUM_TEST_SANITIZED
  return few;
#else
  return all;
#endif
}

}  // namespace adasum::test
