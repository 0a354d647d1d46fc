// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <chrono>
#include <string>
#include <string_view>

#include "error.hpp"
#include "waiting_time.hpp"

namespace adasum {

/// When the Gram matrix is measured.
enum class measuring {
  always,       ///< so that the report is complete for every rule
  when_needed,  ///< not for rules that need no inner products (sum, mean): their report then holds no norms
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

/// What a call is told at run time. All ranks must choose the same.
/// @tparam CheckedByDefault  true in builds without NDEBUG. It is a parameter so that code built with and without NDEBUG
///                           can be linked together
template <bool CheckedByDefault>
struct basic_options {
  /// Whether agreement is checked unless something else is said.
  static constexpr bool checked_by_default = CheckedByDefault;

  /// Before anything changes, compare the ranks' lengths, segments, scalar types, rules, schedules and options, and
  /// let every rank throw the same agreement_error when they differ or when one of them was given bad input.
  /// Costs ⌈log₂P⌉ exchanges of one short message at each run of a plan. Making a plan, and a single call, has as many in
  /// any case: without this check, ranks that are not ready or differ throw a communication_error there, which does not
  /// say in what, and later runs of the plan check nothing. Where only some ranks choose it, all throw.
  bool check_agreement = CheckedByDefault;

  /// For rules that need no inner products: whether they are measured all the same, for the report.
  measuring measure = measuring::always;

  /// What happens to Inf and NaN: docs/inf_and_nan.md. The policies other than propagate read the gradient once more and
  /// exchange one small message in advance.
  nonfinite_policy nonfinite = nonfinite_policy::propagate;

  /// Arithmetic stays in float and double; only messages between ranks are rounded, to nearest even. float gradients only.
  ///
  ///     |x| ≥ 65520 (binary16), 2^128 (1 - 2^-9) (bfloat16)   becomes infinite
  ///     |x| ≤ 2^-25 (binary16), 2^-134 (bfloat16)             becomes zero
  ///
  /// That is no error, under any nonfinite_policy: exclude and raise look at the gradients as they were given. Inf goes on
  /// as under propagate. report::lost_on_wire() counts both, over all ranks: scale the loss where it is not zero. A vector is
  /// rounded when it is sent (a gradient, or what is combined so far), with the part of it that its sender keeps where all
  /// combine everything; and the result once more by those that computed it, so that all ranks have the same bits.
  wire_format wire = wire_format::same;

  /// In shared memory: how long a rank waits for another one that is in the same reduction before it throws. With
  /// allreduce_plan::start, make it longer than a rank may compute between two calls of test(). test() itself never gives
  /// up. At the beginning of a reduction, and for messages, the communicator's own timeout counts (set_timeout()).
  std::chrono::duration<double> timeout = std::chrono::seconds(60);

  /// Whether the communicator keeps the plan of a single call, for those that are made again (allreduce.hpp). Plans do not
  /// look at it.
  bool keep_plan = true;

  friend constexpr bool operator==(const basic_options&, const basic_options&) = default;
};

/// For the check that all ranks made the same choices.
template <bool CheckedByDefault>
std::string describe(const basic_options<CheckedByDefault>& choices) {
  std::string text = choices.measure == measuring::always ? "measured" : "not measured";
  if (choices.nonfinite == nonfinite_policy::exclude) text += ", exclude";
  if (choices.nonfinite == nonfinite_policy::raise) text += ", raise";
  if (choices.wire != wire_format::same) text.append(", ").append(to_string(choices.wire));
  return text;
}

namespace detail {

/// @throws bad_input  a timeout that is not positive, or a value that its enumeration does not have
template <bool CheckedByDefault>
void require_valid(const basic_options<CheckedByDefault>& choices, const char* call) {
  if (!(choices.timeout.count() > 0))  // nor NaN
    throw bad_input(std::string(call) + ": options::timeout is " + text_of(choices.timeout) + "; it must be positive");
  const auto require_below = [&](auto value, int count, const char* option) {
    if (const auto number = static_cast<int>(value); number < 0 || number >= count)
      throw bad_input(std::string(call) + ": options::" + option + " has no value " + std::to_string(number));
  };
  require_below(choices.measure, 2, "measure");
  require_below(choices.nonfinite, 3, "nonfinite");
  require_below(choices.wire, 3, "wire");
}

}  // namespace detail

#ifdef NDEBUG
using options = basic_options<false>;
#else
/// What calls take, in braces: `{.wire = wire_format::bfloat16}`. Agreement is checked by default unless NDEBUG is defined.
using options = basic_options<true>;
#endif

}  // namespace adasum
