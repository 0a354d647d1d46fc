// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>
#if __has_include(<xlocale.h>)
#include <xlocale.h>
#else
#include <locale.h>
#endif

#include "float_bits.hpp"

namespace adasum::detail {

/// What std::from_chars does, by strtod.
inline bool read_number_by_strtod(std::string_view text, double& number) {
  // What strtod reads besides: blanks, a plus, hexadecimal digits.
  if (text.empty() || std::string_view("+ \t\n\v\f\r").find(text.front()) != text.npos ||
      text.find_first_of("xX") != text.npos)
    return false;
  static const locale_t point = newlocale(LC_ALL_MASK, "C", locale_t{});  // others have a decimal comma
  const std::string copy(text);                                           // ends with a zero
  char* end = nullptr;
  errno = 0;
  number = strtod_l(copy.c_str(), &end, point);
  const bool is_in_range = errno != ERANGE || (is_finite(number) && !is_zero(number));
  return end == copy.data() + copy.size() && is_in_range;
}

/// Whether all of the text is a number, in the notation of C but not hexadecimal, that `number` can hold; then it holds it.
template <class Number>
bool read_number(std::string_view text, Number& number) {
  const auto* const end = text.data() + text.size();
  if constexpr (requires { std::from_chars(end, end, number); }) {
    const auto [last, error] = std::from_chars(text.data(), end, number);
    return error == std::errc() && last == end;
  } else {  // libc++ before 20 has no from_chars for double
    return read_number_by_strtod(text, number);
  }
}

}  // namespace adasum::detail
