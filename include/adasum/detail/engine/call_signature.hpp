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

#include "../../core/stage.hpp"

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

/// What one rank is about to do, as it travels to the others.
struct call_signature {
  template <std::size_t Size>
  using text = std::array<char, Size>;

  /// If there is no room for all of it: its first whole characters in UTF-8 (Python shows no parts of one), and "…".
  static void set(std::span<char> field, std::string_view value);
  static std::string get(std::span<const char> field) { return field.data(); }

  /// A rule or a schedule.
  struct named {
    std::uint64_t hash = 0;  ///< of the parameters
    text<64> parameters{};   ///< as far as there is room
    text<32> name{};
  };

  std::uint64_t length = 0;
  std::uint64_t segments = 0;
  std::uint64_t segments_hash = 0;
  std::uint64_t stages_hash = 0;
  std::uint64_t recombines_in_double = 0;  ///< decides how many sums there are
  std::uint64_t on_device = 0;             ///< decides how many messages there are
  std::uint64_t parts_hash = 0;            ///< of a reduce_scatter: of all parts
  std::uint64_t plan_is_kept = 0;          ///< of a single call: whether an earlier one has made it
  named rule{}, schedule{}, inner_rule{};
  text<32> activity{};  ///< whether a plan is made, or run
  text<16> scalar{};
  text<32> location{};                 ///< where the gradient lies
  text<24> destination{};              ///< which ranks get the result
  text<64> parts{};                    ///< their lengths, as far as there is room
  text<24> shards{"whole gradients"};  ///< what gradients are: whole, or shards
  text<32> options{};
  text<32> space{};
  text<256> problem{};  ///< what is wrong with this rank's own input; empty if nothing

  bool has_problem() const { return problem[0] != '\0'; }
  /// A hash of all but the problem.
  std::uint64_t intent() const {
    auto copy = *this;
    copy.problem.fill('\0');
    static_assert(sizeof(call_signature) % sizeof(std::uint64_t) == 0);
    return hash(std::bit_cast<std::array<std::uint64_t, sizeof(call_signature) / sizeof(std::uint64_t)>>(copy));
  }
};

/// A signature, and its hash: so that who does the same again need not make that again.
struct hashed_signature {
  hashed_signature(const call_signature& signature) : hashed_signature(signature, signature.intent()) {}
  hashed_signature(const call_signature& signature, std::uint64_t known_intent)
      : what(&signature), intent(known_intent) {}

  const call_signature* what;
  std::uint64_t intent;
};

/// Buffers of an agreement, kept between runs so that none is allocated.
struct agreement_memory {
  explicit agreement_memory(int size = 0)
      : signatures(static_cast<std::size_t>(size)), words(static_cast<std::size_t>(size)) {}
  bool empty() const { return signatures.empty(); }

  std::vector<call_signature> signatures;  ///< of all ranks
  std::vector<std::uint64_t> words;        ///< of all ranks
};

/// Stages tell apart schedules of one name with different parameters.
void add_stages(call_signature& mine, const std::vector<stage>& stages);

/// The name of a rule or a schedule, and its parameters: in the text, as many whole numbers as there is room for.
call_signature::named signature_of(std::string_view name, const std::vector<double>& parameters);

}  // namespace adasum::detail

#if ADASUM_DEFINITIONS

#include <charconv>
#include <iterator>

namespace adasum::detail {

ADASUM_INLINE void call_signature::set(std::span<char> field, std::string_view value) {
  constexpr std::string_view and_more = "…";
  constexpr auto continues_character = [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; };
  std::ranges::fill(field, '\0');
  if (value.size() < field.size()) {
    std::ranges::copy(value, field.begin());
    return;
  }
  auto kept = field.size() - 1 - and_more.size();
  while (kept > 0 && continues_character(value[kept])) --kept;
  std::ranges::copy(and_more, std::ranges::copy(value.substr(0, kept), field.begin()).out);
}

ADASUM_INLINE void add_stages(call_signature& mine, const std::vector<stage>& stages) {
  auto& value = mine.stages_hash;
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

ADASUM_INLINE call_signature::named signature_of(std::string_view name, const std::vector<double>& parameters) {
  constexpr std::string_view separator = ", ", and_more = ", …";
  call_signature::named found;
  call_signature::set(found.name, name);
  const auto room = found.parameters.size() - 1 - and_more.size();
  std::string text;
  bool is_cut = false;
  for (const double one : parameters) {
    found.hash = hash(std::array{std::bit_cast<std::uint64_t>(one)}, found.hash);
    if (is_cut) continue;
    char digits[32];
    const std::string_view number(digits, std::to_chars(digits, std::end(digits), one).ptr);
    is_cut = text.size() + separator.size() + number.size() > room;
    if (is_cut)
      text += and_more;
    else
      text.append(text.empty() ? "" : separator).append(number);
  }
  call_signature::set(found.parameters, text);
  return found;
}

}  // namespace adasum::detail

#endif
