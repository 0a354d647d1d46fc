// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <array>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "../../core/scalar.hpp"
#include "../../core/segments.hpp"
#include "../../core/stage.hpp"
#include "../references/rule_ref.hpp"
#include "../references/schedule_ref.hpp"
#include "call_signature.hpp"

/// What the arguments of a call become in its signature.
namespace adasum::detail {

inline void add_stages(call_signature& mine, const std::vector<stage>& stages) {
  auto& value = mine.schedule_hash;
  for (const auto& one : stages) {
    value = hash(one.members, value);
    value = hash(one.leaf_offsets, value);
    value = hash(one.sum_over, value);
    value = hash(std::array{one.survivors, one.held.begin, one.held.end, std::size_t{one.inner},
                            std::size_t{one.published}, std::size_t{one.grouped}},
                 value);
    for (const auto part : one.parts) value = hash(std::array{part.begin, part.end}, value);
  }
}

/// The stages of all ranks, as every rank computes them, tell apart schedules of one name with different parameters.
inline void add_stages_of(call_signature& mine, const schedule_ref& order, int size, const schedule_input& input) {
  for (int rank = 0; rank < size; ++rank) add_stages(mine, order.stages(rank, size, input));
}

/// What the parameters of a rule or a schedule hash to.
inline std::uint64_t parameters_hash(const std::vector<double>& parameters) {
  std::uint64_t value = 0;
  for (const double one : parameters) value = hash(std::array{std::bit_cast<std::uint64_t>(one)}, value);
  return value;
}
/// These parameters, for messages: as many whole numbers as there is room for.
inline std::string parameters_text(const std::vector<double>& parameters) {
  constexpr std::string_view separator = ", ", and_more = ", …";
  constexpr std::size_t room = sizeof(call_signature::rule_parameters) - 1 - and_more.size();
  std::string text;
  for (const double one : parameters) {
    char digits[32];
    const std::string_view number(digits, std::to_chars(digits, std::end(digits), one).ptr);
    if (text.size() + separator.size() + number.size() > room) return text.append(and_more);
    text.append(text.empty() ? "" : separator).append(number);
  }
  return text;
}

/// What a rank means to do whenever it runs a plan of these; the length, and what is wrong, are added at each run.
/// @param location  where the gradient lies
inline call_signature signature_of(number_format format, segments_view segments, const rule_ref& rule,
                                   const schedule_ref& schedule_in_use, std::string_view location,
                                   std::string_view options) {
  call_signature mine;
  mine.set(mine.activity, "making a plan");
  mine.length = segments.all().end;
  mine.set_segments(segments);
  mine.set(mine.scalar, to_string(format));
  const auto inner = schedule_in_use.inner_rule();
  const auto of_rule = rule.parameters(), of_inner = inner.parameters(), of_schedule = schedule_in_use.parameters();
  mine.set(mine.rule, rule.name());
  mine.set(mine.schedule, schedule_in_use.name());
  mine.set(mine.inner_rule, inner.name());
  mine.rule_hash = parameters_hash(of_rule);
  mine.inner_rule_hash = parameters_hash(of_inner);
  mine.set(mine.rule_parameters, parameters_text(of_rule));
  mine.set(mine.inner_rule_parameters, parameters_text(of_inner));
  mine.schedule_parameters_hash = parameters_hash(of_schedule);
  mine.set(mine.schedule_parameters, parameters_text(of_schedule));
  mine.set(mine.location, location);
  mine.set(mine.options, options);
  return mine;
}

}  // namespace adasum::detail
