// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>

#include "../../core/optional_members.hpp"
#include "../../core/scalar.hpp"
#include "../../core/segments.hpp"
#include "space_ref.hpp"

namespace adasum::detail {

/// What a space offers for sums of vectors that are kept in double.
struct sums_table {
  space_memory (*allocate)(const void* space, std::size_t count);
  /// A sum of vectors, in double.
  void (*add_up)(const void* space, const slice& window, vector_list vectors, const double* weights, void* sum);
  void (*measure)(const void* space, const slice& window, vector_list sums, double* gram);
  /// A combination of sums, in the vectors' type.
  void (*mix)(const void* space, const slice& window, vector_list sums, const double* weights, void* out);
};

// ── from the concept to the table ──

template <scalar T, class Space>
requires combines_in_groups<Space, T>
inline constexpr sums_table sums_of_space{
    &functions_of_space<double, Space>::allocate,
    [](const void* space, const slice& window, vector_list vectors, const double* weights, void* sum) {
      static_cast<const Space*>(space)->mix_in_double(window, typed<T>(vectors), weights, static_cast<double*>(sum));
    },
    [](const void* space, const slice& window, vector_list sums, double* gram) {
      static_cast<const Space*>(space)->measure_in_double(window, typed<double>(sums), gram);
    },
    [](const void* space, const slice& window, vector_list sums, const double* weights, void* out) {
      static_cast<const Space*>(space)->mix_in_double(window, typed<double>(sums), weights, static_cast<T*>(out));
    }};

template <scalar T, class Space>
constexpr const sums_table* sums_if_any() {
  if constexpr (combines_in_groups<Space, T>)
    return &sums_of_space<T, Space>;
  else
    return nullptr;
}

}  // namespace adasum::detail
