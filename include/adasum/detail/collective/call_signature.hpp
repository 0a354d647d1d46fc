// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../../core/scalar.hpp"
#include "../../core/segments.hpp"
#include "../../core/stage.hpp"
#include "../references/rule_ref.hpp"
#include "../references/schedule_ref.hpp"

namespace adasum::detail {

/// FNV-1a, of whole numbers in place of bytes.
constexpr std::uint64_t hash(const auto& numbers, std::uint64_t start = 0) {
  auto value = start ^ 14695981039346656037u;
  for (const auto number : numbers) {
    value = (value ^ static_cast<std::uint64_t>(number)) * 1099511628211u;
    value ^= value >> 32;  // or the highest bit would reach no other
  }
  return value;
}

/// What one rank is about to do, as it travels to the others. Texts are cut to their fields.
struct call_signature {
  template <std::size_t Size>
  using text = std::array<char, Size>;

  std::uint64_t length = 0;
  std::uint64_t segments = 0;
  std::uint64_t segments_hash = 0;
  std::uint64_t schedule_hash = 0;
  std::uint64_t rule_hash = 0;  ///< of its parameters
  std::uint64_t inner_rule_hash = 0;
  std::uint64_t schedule_parameters_hash = 0;
  std::uint64_t recombines_in_double = 0;  ///< decides how many sums there are
  std::uint64_t on_device = 0;             ///< decides how many messages there are
  std::uint64_t root = 0;                  ///< of a reduce
  std::uint64_t parts_hash = 0;            ///< of a reduce_scatter: of all parts
  std::uint64_t plan_is_kept = 0;          ///< of a single call: whether an earlier one has made it
  text<32> activity{};                     ///< whether a plan is made, or run
  text<16> scalar{};
  text<32> rule{};
  text<32> schedule{};
  text<32> inner_rule{};
  text<64> rule_parameters{}, inner_rule_parameters{}, schedule_parameters{};  ///< as far as there is room
  text<32> location{};                                                         ///< where the gradient lies
  text<24> destination{};                                                      ///< which ranks get the result
  text<64> parts{};                    ///< their lengths, as far as there is room
  text<24> shards{"whole gradients"};  ///< what gradients are: whole, or shards
  text<32> options{};
  text<32> space{};
  text<256> problem{};  ///< what is wrong with this rank's own input; empty if nothing

  template <std::size_t Size>
  static void set(text<Size>& field, std::string_view value) {
    field.fill('\0');
    std::ranges::copy(value.substr(0, Size - 1), field.begin());
  }
  template <std::size_t Size>
  static std::string get(const text<Size>& field) {
    return field.data();
  }

  bool has_problem() const { return problem[0] != '\0'; }
  /// A hash of all but the problem.
  std::uint64_t intent() const {
    auto copy = *this;
    copy.problem.fill('\0');
    static_assert(sizeof(call_signature) % sizeof(std::uint64_t) == 0);
    return hash(std::bit_cast<std::array<std::uint64_t, sizeof(call_signature) / sizeof(std::uint64_t)>>(copy));
  }

  /// What segments, stages and rules' parameters hash to is compared apart.
  bool equals_but_boundaries(const call_signature& other) const {
    return activity == other.activity && length == other.length && segments == other.segments &&
           scalar == other.scalar && rule == other.rule && schedule == other.schedule &&
           inner_rule == other.inner_rule && recombines_in_double == other.recombines_in_double &&
           on_device == other.on_device && location == other.location && options == other.options &&
           space == other.space && destination == other.destination && root == other.root && parts == other.parts &&
           shards == other.shards;
  }

  void set_segments(segments_view segs) {
    segments = segs.size();
    segments_hash = hash(segs.offsets());
  }
  /// The stages of all ranks, as every rank computes them, tell apart schedules of one name with different parameters.
  void add_stages_of(const schedule_ref& schedule_in_use, int size, const schedule_input& input) {
    for (int rank = 0; rank < size; ++rank) add_stages(schedule_in_use.stages(rank, size, input));
  }
  void add_stages(const std::vector<stage>& stages) {
    for (const auto& stage : stages) {
      schedule_hash = hash(stage.members, schedule_hash);
      schedule_hash = hash(stage.leaf_offsets, schedule_hash);
      schedule_hash = hash(stage.sum_over, schedule_hash);
      schedule_hash = hash(std::array{stage.survivors, stage.held.begin, stage.held.end, std::size_t{stage.inner},
                                      std::size_t{stage.published}, std::size_t{stage.grouped}},
                           schedule_hash);
      for (const auto part : stage.parts) schedule_hash = hash(std::array{part.begin, part.end}, schedule_hash);
    }
  }
};

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
