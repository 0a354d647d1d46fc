// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <bit>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

/// Texts that are made of parts. By functions of a list, and not by additions of strings, of which each compiles to a hundred
/// bytes where it stands.
namespace adasum::detail {

/// A text, a number, or how many of something there are ("1 element", "2 elements"). Numbers are written without regard to the
/// locale, with as many digits as it takes to read back the same one.
class text_part {
 public:
  text_part(std::string_view text) : text_(text.data()), value_(text.size()), kind_(kind::text) {}
  text_part(const char* text) : text_part(std::string_view(text)) {}
  text_part(const std::string& text) : text_part(std::string_view(text)) {}
  text_part(double number) : text_(nullptr), value_(std::bit_cast<std::uint64_t>(number)), kind_(kind::real) {}
  /// @param unit  one of them
  template <std::integral Number>
  text_part(Number number, const char* unit = nullptr)
      : text_(unit), value_(static_cast<std::uint64_t>(number)), kind_(kind::whole) {
    if constexpr (std::signed_integral<Number>)  // nvcc warns of the comparison otherwise
      if (number < 0) kind_ = kind::negative;
  }

 private:
  friend void append(std::string& text, std::initializer_list<text_part> parts);
  void append_to(std::string& text) const;

  enum class kind { text, whole, negative, real };
  const char* text_;     // or the unit; or null
  std::uint64_t value_;  // of a text: its length
  kind kind_;
};

/// How many. @param unit  one of them
template <std::integral Count>
text_part counted(Count count, const char* unit) {
  return {count, unit};
}

void append(std::string& text, std::initializer_list<text_part> parts);
std::string joined(std::initializer_list<text_part> parts);

/// "rank 3"
inline std::string rank_name(std::integral auto rank) { return joined({"rank ", rank}); }

}  // namespace adasum::detail

#if ADASUM_DEFINITIONS
#include <charconv>
#include <iterator>

namespace adasum::detail {

ADASUM_INLINE void text_part::append_to(std::string& text) const {
  char digits[32];
  const auto append_number = [&](auto number) {
    text.append(digits, std::to_chars(digits, std::end(digits), number).ptr);
  };
  switch (kind_) {
    case kind::text: text.append(text_, value_); return;
    case kind::real: append_number(std::bit_cast<double>(value_)); break;
    case kind::negative: append_number(static_cast<std::int64_t>(value_)); break;
    case kind::whole: append_number(value_); break;
  }
  if (text_ != nullptr) text.append(" ").append(text_).append(value_ == 1 ? "" : "s");
}

ADASUM_INLINE void append(std::string& text, std::initializer_list<text_part> parts) {
  for (const auto& part : parts) part.append_to(text);
}

ADASUM_INLINE std::string joined(std::initializer_list<text_part> parts) {
  std::string text;
  append(text, parts);
  return text;
}

}  // namespace adasum::detail
#endif
