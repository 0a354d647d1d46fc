// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../../core/segments.hpp"

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
};

/// Buffers of an agreement, kept between runs so that none is allocated.
struct agreement_memory {
  explicit agreement_memory(int size = 0)
      : signatures(static_cast<std::size_t>(size)), words(static_cast<std::size_t>(size)) {}
  bool empty() const { return signatures.empty(); }

  std::vector<call_signature> signatures;  ///< of all ranks
  std::vector<std::uint64_t> words;        ///< of all ranks
};

}  // namespace adasum::detail
