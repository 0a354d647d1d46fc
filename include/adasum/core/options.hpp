// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

namespace adasum {

/// When the Gram matrix is measured.
enum class measuring {
  always,       ///< so that the report is complete for every rule
  when_needed,  ///< not for rules that look at no inner product (sum, mean); their report then holds no norms
};

/// What happens when a gradient holds Inf or NaN.
enum class nonfinite_policy {
  propagate,  ///< the segment becomes NaN on all ranks
  exclude,    ///< a rank whose gradient is not finite, in any segment, does not take part: its weight is 0, the mean is
              ///< taken over the others, and the report names it. If no rank is left, the result is 0.
  raise,      ///< every rank throws the same nonfinite_error, and no gradient has changed
};

/// How elements travel between ranks.
enum class wire_format {
  same,      ///< as they are
  bfloat16,  ///< float elements rounded to bfloat16 (8 bits of precision, the range of float)
  binary16,  ///< float elements rounded to IEEE half (11 bits of precision; larger than 65504 becomes infinite)
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

  /// The policies other than propagate read the gradient once more and exchange one small message in advance.
  nonfinite_policy nonfinite = nonfinite_policy::propagate;

  /// Arithmetic stays in float and double; only messages between ranks are rounded. float gradients only.
  wire_format wire = wire_format::same;

  /// In shared memory: how long a rank waits for another that is in the same reduction, before it throws. Where that
  /// may compute in between (allreduce_plan::start), longer than it does so without a test(); test() itself never gives
  /// up.
  double patience_seconds = 60;

  friend constexpr bool operator==(const basic_options&, const basic_options&) = default;
};

/// For the check that all ranks made the same choices.
template <bool CheckedByDefault>
std::string describe(const basic_options<CheckedByDefault>& choices) {
  std::string text = choices.measure == measuring::always ? "measured" : "not measured";
  if (choices.nonfinite == nonfinite_policy::exclude) text += ", exclude";
  if (choices.nonfinite == nonfinite_policy::raise) text += ", raise";
  if (choices.wire == wire_format::bfloat16) text += ", bfloat16";
  if (choices.wire == wire_format::binary16) text += ", binary16";
  return text;
}

#ifdef NDEBUG
using options = basic_options<false>;
#else
using options = basic_options<true>;
#endif

}  // namespace adasum
