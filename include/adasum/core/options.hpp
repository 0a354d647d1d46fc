// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <chrono>
#include <string>
#include <string_view>

#include "error.hpp"

namespace adasum {

/// When the Gram matrix is measured.
enum class measuring {
  always,       ///< so that the report is complete for every rule
  when_needed,  ///< not for rules that need no inner products (sum, mean): the report then holds no norms, also if it is
                ///< only one of the two rules of schedules::hierarchical
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
  binary16,  ///< float elements rounded to IEEE half (11 bits of precision, from 6e-8 to 65504)
};

/// "same", "bfloat16" or "binary16".
constexpr std::string_view to_string(wire_format format) {
  switch (format) {
    case wire_format::same: return "same";
    case wire_format::bfloat16: return "bfloat16";
    case wire_format::binary16: return "binary16";
  }
  return "unknown";
}

/// The options of a call, chosen at run time. All ranks must choose the same.
/// @tparam CheckedByDefault  true in builds without NDEBUG. It is a parameter so that code built with and without NDEBUG
///                           can be linked together
template <bool CheckedByDefault>
struct basic_options {
  /// The default of check_agreement.
  static constexpr bool checked_by_default = CheckedByDefault;

  /// Whether the ranks compare their lengths, segments, scalar types, rules, schedules and options before anything changes. If
  /// these differ, or if one rank was given bad input, every rank throws the same agreement_error. The check costs ⌈log₂P⌉
  /// exchanges of one short message at each run of a plan, or about 0.1 µs where the plan works in memory that all ranks
  /// share. When a plan is made, and in single calls, ranks compare in any case: without the check, ranks that differ or are
  /// not ready throw a communication_error there, which does not say what differs, and later runs of the plan check nothing.
  /// If only some ranks choose the check, all throw.
  bool check_agreement = CheckedByDefault;

  /// For rules that need no inner products: whether inner products are measured anyway, for the report.
  measuring measure = measuring::always;

  /// What happens to Inf and NaN: docs/inf_and_nan.md. The policies exclude and raise read the gradient once more, and
  /// exchange one small message in advance.
  nonfinite_policy nonfinite = nonfinite_policy::propagate;

  /// Arithmetic stays in float and double; only messages between ranks are rounded, to nearest even. float gradients only.
  ///
  ///     |x| ≥ 65520 (binary16), 2^128 (1 - 2^-9) (bfloat16)   becomes infinite
  ///     |x| ≤ 2^-25 (binary16), 2^-134 (bfloat16)             becomes zero
  ///
  /// This is not an error under any nonfinite_policy: exclude and raise look at the gradients as they were given. Inf then
  /// propagates. If elements may be so large or small, scale the loss. Each vector is rounded when it is sent, whether it is
  /// a gradient or a combination; if all ranks combine everything, the sender also rounds the part that it keeps. The ranks
  /// that compute the result round it once more, so that all ranks have the same bits.
  wire_format wire = wire_format::same;

  /// In shared memory: how long a rank waits for another rank in the same reduction before it throws. With
  /// allreduce_plan::start, make this longer than the time for which a rank may compute between two calls of test(). test()
  /// itself never gives up. At the beginning of a reduction, and for messages, the communicator's own timeout applies
  /// (set_timeout()).
  std::chrono::duration<double> timeout = std::chrono::seconds(60);

  /// Whether the communicator keeps the plan of a single call, in case the same call is made again (allreduce.hpp). Plans
  /// ignore this option.
  bool keep_plan = true;

  friend constexpr bool operator==(const basic_options&, const basic_options&) = default;
};

namespace detail {

/// Options of one type in builds with NDEBUG and without.
template <bool Checked>
basic_options<true> options_of_plan(const basic_options<Checked>& choices) {
  return {choices.check_agreement, choices.measure,  choices.nonfinite, choices.wire,
          choices.timeout,         choices.keep_plan};
}

std::string describe_options(const basic_options<true>& choices);

/// @throws bad_input  the timeout is not positive, or an option has a value that its enumeration does not have
void require_valid(const basic_options<true>& choices, const char* call);

}  // namespace detail

/// For the check that all ranks made the same choices.
template <bool CheckedByDefault>
std::string describe(const basic_options<CheckedByDefault>& choices) {
  return detail::describe_options(detail::options_of_plan(choices));
}

#ifdef NDEBUG
using options = basic_options<false>;
#else
/// What calls take, in braces: `{.wire = wire_format::bfloat16}`. Agreement is checked by default unless NDEBUG is defined.
using options = basic_options<true>;
#endif

}  // namespace adasum

#if ADASUM_DEFINITIONS
#include "waiting.hpp"

namespace adasum::detail {

ADASUM_INLINE std::string describe_options(const basic_options<true>& choices) {
  std::string text = choices.measure == measuring::always ? "measured" : "not measured";
  if (choices.nonfinite == nonfinite_policy::exclude) text += ", exclude";
  if (choices.nonfinite == nonfinite_policy::raise) text += ", raise";
  if (choices.wire != wire_format::same) text.append(", ").append(to_string(choices.wire));
  return text;
}

ADASUM_INLINE void require_valid(const basic_options<true>& choices, const char* call) {
  if (!(choices.timeout.count() > 0))  // nor NaN
    throw bad_input({call, ": options::timeout is ", text_of(choices.timeout), "; it must be positive"});
  const auto require_below = [&](int number, int count, const char* option) {
    if (number < 0 || number >= count) throw bad_input({call, ": options::", option, " has no value ", number});
  };
  require_below(static_cast<int>(choices.measure), 2, "measure");
  require_below(static_cast<int>(choices.nonfinite), 3, "nonfinite");
  require_below(static_cast<int>(choices.wire), 3, "wire");
}

}  // namespace adasum::detail
#endif
