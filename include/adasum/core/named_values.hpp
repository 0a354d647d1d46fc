// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <cerrno>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#if __has_include(<xlocale.h>)
#include <xlocale.h>
#else
#include <locale.h>
#endif

#include "scalar.hpp"

/// Numbers that a text holds, and values that it gives by their names.
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

namespace adasum {

/// Which numbers a value may be, and how a message says it.
struct number_range {
  double least;           ///< itself among them
  double most;            ///< likewise
  std::string_view text;  ///< "a number from 0 to 1"
};

/// @cond internal
namespace number_ranges {
using limits = std::numeric_limits<double>;
inline constexpr number_range any{-limits::infinity(), limits::infinity(), "a number"},
    from_0{0, limits::infinity(), "a number that is not negative"},
    above_0{limits::denorm_min(), limits::infinity(), "a number above 0"}, from_0_to_1{0, 1, "a number from 0 to 1"},
    from_0_to_2{0, 2, "a number from 0 to 2"},
    from_0_below_1{0, 1 - limits::epsilon() / 2, "a number from 0 on, but below 1"};
}  // namespace number_ranges
/// @endcond

/// Values that a text gives by their names: "radius=2, per_segment=yes". Names may come in any order, each at most once; blanks
/// around names and values do not count. Whoever reads them says which values there are, by reading all of them, and of
/// which kind each is:
///
///     named_values given("the rule centred_clipping", text);
///     given.read("radius", radius);
///     given.read("per_segment", per_segment);
///     given.require_all_read();
///
/// Numbers are written as in C ("1e-3"); truth values are yes or no, true or false, 1 or 0; choices have names. A value that is
/// not given leaves the variable as it is. Every error is a bad_input that names what the text is for, and what there is.
class named_values {
 public:
  /// @param owner       what has the values, for messages
  /// @param takes_rest  the name whose value is all that follows, commas included
  /// @throws bad_input  something that is not name=value; a name that comes twice
  named_values(std::string owner, std::string_view text, std::string_view takes_rest = {});

  /// A whole number. @throws bad_input  it is not one
  template <std::integral Number>
    requires(!std::same_as<Number, bool>)
  void read(std::string_view name, Number& value) {
    const auto* const found = ask_for(name);
    if (!found) return;
    Number number{};
    if (!detail::read_number(found->value, number)) refuse(*found, "a whole number that is not negative");
    value = number;
  }

  /// A number within limits. @throws bad_input  it is not one
  template <std::floating_point Number>
  void read(std::string_view name, Number& value, const number_range& allowed = number_ranges::any) {
    const auto* const found = ask_for(name);
    if (!found) return;
    Number number{};
    if (!detail::read_number(found->value, number) || detail::is_nan(number) || number < allowed.least ||
        number > allowed.most)
      refuse(*found, std::string(allowed.text));
    value = number;
  }

  /// A truth value. @throws bad_input  it is not one
  void read(std::string_view name, bool& value);

  /// One of several choices that have names. @throws bad_input  it is none of them
  template <class Choice, std::size_t count>
  void read(std::string_view name, Choice& value, const std::pair<std::string_view, Choice> (&choices)[count]) {
    const auto* const found = ask_for(name);
    if (!found) return;
    std::string names;
    for (const auto& [each, meaning] : choices) {
      if (found->value == each) {
        value = meaning;
        return;
      }
      names.append(names.empty() ? "" : " or ").append(each);
    }
    refuse(*found, names);
  }

  /// The text itself, of the value that takes the rest. @return whether it was given
  bool read(std::string_view name, std::string_view& value);

  /// @throws bad_input  a name for which nobody has asked
  void require_all_read() const;

 private:
  struct entry {
    std::string_view name, value;
    bool is_read = false;
  };

  entry* find(std::string_view name);
  const entry* ask_for(std::string_view name);
  [[noreturn]] void refuse(const entry& wrong, const std::string& expected) const;

  std::string owner_, known_;
  std::vector<entry> given_;
};

}  // namespace adasum

#if ADASUM_DEFINITIONS
#include <array>

#include "error.hpp"

namespace adasum {

namespace detail {

constexpr std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  const auto first = text.find_first_not_of(blanks);
  return first == text.npos ? std::string_view() : text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

}  // namespace detail

ADASUM_INLINE named_values::named_values(std::string owner, std::string_view text, std::string_view takes_rest)
    : owner_(std::move(owner)) {
  if (detail::without_blanks(text).empty()) return;
  for (bool more = true; more;) {
    const auto comma = text.find(',');
    const auto one = text.substr(0, comma);
    const auto equals = one.find('=');
    const auto name = detail::without_blanks(one.substr(0, equals));
    if (equals == std::string_view::npos || name.empty())
      throw bad_input({"adasum: ", owner_, ": '", detail::without_blanks(one), "' is not of the form name=value"});
    const bool takes_all = !takes_rest.empty() && name == takes_rest;
    const auto value = takes_all ? text.substr(equals + 1) : one.substr(equals + 1);
    if (find(name)) throw bad_input({"adasum: ", owner_, ": ", name, " is given twice"});
    given_.push_back({name, detail::without_blanks(value)});
    more = comma != std::string_view::npos && !takes_all;
    if (more) text.remove_prefix(comma + 1);
  }
}

ADASUM_INLINE void named_values::read(std::string_view name, bool& value) {
  const auto* const found = ask_for(name);
  if (!found) return;
  for (const auto& [yes, no] : {std::array<std::string_view, 2>{"yes", "no"}, {"true", "false"}, {"1", "0"}})
    if (found->value == yes || found->value == no) {
      value = found->value == yes;
      return;
    }
  refuse(*found, "yes or no");
}

ADASUM_INLINE bool named_values::read(std::string_view name, std::string_view& value) {
  const auto* const found = ask_for(name);
  if (found) value = found->value;
  return found != nullptr;
}

ADASUM_INLINE void named_values::require_all_read() const {
  for (const auto& [name, value, is_read] : given_)
    if (!is_read)
      throw bad_input({"adasum: ", owner_, ": there is no '", name, "'; ",
                       known_.empty()                    ? "nothing can be given"
                       : known_.find(',') == known_.npos ? "there is " + known_
                                                         : "there are " + known_});
}

ADASUM_INLINE named_values::entry* named_values::find(std::string_view name) {
  for (auto& one : given_)
    if (one.name == name) return &one;
  return nullptr;
}

ADASUM_INLINE const named_values::entry* named_values::ask_for(std::string_view name) {
  known_.append(known_.empty() ? "" : ", ").append(name);
  auto* const found = find(name);
  if (found) found->is_read = true;
  return found;
}

ADASUM_INLINE void named_values::refuse(const entry& wrong, const std::string& expected) const {
  throw bad_input({"adasum: ", owner_, ": ", wrong.name, " is '", wrong.value, "'; it must be ", expected});
}

}  // namespace adasum
#endif
