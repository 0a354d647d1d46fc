// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace adasum {

/// When the Gram matrix is measured.
enum class measuring {
  always,       ///< so that the report is complete for every rule
  when_needed,  ///< not for rules that look at no inner product (sum, mean); their report then holds no norms
};

/// Choices that a call leaves to run time. All ranks must make the same ones.
/// @tparam CheckedByDefault  true in builds without NDEBUG; a parameter, so that such builds and others can be linked
template <bool CheckedByDefault>
struct basic_options {
  static constexpr bool checked_by_default = CheckedByDefault;

  /// Before anything changes, compare the ranks' lengths, segments, scalar types, rules, schedules and options, and
  /// let every rank throw the same agreement_error when they differ or when one of them was given bad input.
  /// Costs ⌈log₂ P⌉ exchanges of small messages per call.
  bool check_agreement = CheckedByDefault;

  measuring measure = measuring::always;

  friend constexpr bool operator==(const basic_options&, const basic_options&) = default;
};

#ifdef NDEBUG
using options = basic_options<false>;
#else
using options = basic_options<true>;
#endif

}  // namespace adasum
