// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "core/config.hpp"

#include <iosfwd>
#include <string>

#include "core/report.hpp"

/// A report as text: for people, as CSV and as JSON for logs. Numbers are written without regard to the locale, with as
/// many digits as it takes to read back the same double.
namespace adasum {

/// For people: a line about the whole, what was not finite, and a line for each segment.
std::string to_text(const report& r);

/// The names of the columns that to_csv writes; ends with a newline.
std::string csv_header();

/// One line for each gradient in each segment. @param step the caller's, to tell runs apart
std::string to_csv(const report& r, long long step);

/// Everything, as one object on one line (JSON Lines); ends with a newline. Numbers that are not finite become null.
///
///     key                   value
///     step                  the caller's
///     rule, schedule        names; the schedule is "" for a local combination
///     wire                  "same", "bfloat16" or "binary16"
///     contributions         number of gradients, n
///     bytes_sent, recombined_segments, fallbacks
///                           this rank's counters
///     orthogonality         of all segments together
///     orthogonalities       [segment]
///     result_norms          [segment]
///     norms, weights        [segment][gradient]: one array of n numbers for each segment
///     nonfinite             [{"contribution": gradient, "segment": segment}, …]
///     excluded              [gradient, …]
std::string to_json(const report& r, long long step);

/// to_text.
template <class Traits>
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out, const report& r) {
  return out << to_text(r);
}

}  // namespace adasum

#if ADASUM_DEFINITIONS
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include "core/error.hpp"
#include "core/options.hpp"
#include "core/scalar.hpp"

namespace adasum {

namespace detail {

/// A name as a string of JSON.
inline void append_json_string(std::string& text, std::string_view name) {
  constexpr std::string_view digits = "0123456789abcdef";
  text += '"';
  for (const char c : name) {
    const auto code = static_cast<unsigned char>(c);
    if (code < 0x20) {
      append(text, {"\\u00", digits.substr(code / 16, 1), digits.substr(code % 16, 1)});
      continue;
    }
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  text += '"';
}

/// A name as a field of CSV (RFC 4180).
inline std::string csv_field(std::string_view name) {
  if (name.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(name);
  std::string quoted = "\"";
  for (const char c : name) quoted.append(c == '"' ? 2 : 1, c);
  return quoted += '"';
}

/// For people: six digits.
inline std::string brief(double number) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, number, std::chars_format::general, 6).ptr};
}

/// JSON knows neither NaN nor Inf.
inline void append_json(std::string& text, double number) {
  if (detail::is_finite(number))
    append(text, {number});
  else
    text += "null";
}

/// An array of what append_one(i) appends.
template <class AppendOne>
void append_json_array(std::string& text, std::size_t count, AppendOne&& append_one) {
  text += '[';
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) text += ',';
    append_one(i);
  }
  text += ']';
}

}  // namespace detail

ADASUM_INLINE std::string to_text(const report& r) {
  std::string text;
  detail::append(text, {r.rule(), " of ", detail::counted(r.contributions(), "gradient"), ", ",
                        detail::counted(r.segments(), "segment")});
  if (!r.schedule().empty())
    detail::append(text, {", by ", r.schedule(), ", ", detail::counted(r.bytes_sent(), "byte"), " sent"});
  if (r.wire() != wire_format::same) detail::append(text, {", elements as ", to_string(r.wire())});
  if (r.measured() && !r.all_excluded()) detail::append(text, {"; orthogonality ", detail::brief(r.orthogonality())});
  if (r.recombined_segments() > 0) detail::append(text, {"; combined vector by vector: ", r.recombined_segments()});
  if (r.fallbacks() > 0) detail::append(text, {"; fallbacks: ", r.fallbacks()});
  text += '\n';
  for (const auto& bad : r.nonfinite())
    detail::append(text, {"  not finite: gradient ", bad.rank, ", segment ", bad.segment, "\n"});
  for (const int i : r.excluded()) detail::append(text, {"  left out: gradient ", i, "\n"});
  if (r.all_excluded()) text += "  no gradient is left: the result is 0\n";
  if (!r.measured() || r.all_excluded()) return text;
  for (std::size_t k = 0; k < r.segments(); ++k) {
    detail::append(text, {"  segment ", k, ": norm ", detail::brief(r.result_norm(k)), ", orthogonality ",
                          detail::brief(r.orthogonality(k)), "; weight × norm of each:"});
    for (std::size_t i = 0; i < r.contributions(); ++i) {
      text += i == 0 ? " " : ", ";
      if (std::find(r.excluded().begin(), r.excluded().end(), static_cast<int>(i)) != r.excluded().end())
        text += "left out";
      else
        detail::append(text, {detail::brief(r.weight(i, k)), " × ", detail::brief(r.norm(i, k))});
    }
    text += '\n';
  }
  return text;
}

ADASUM_INLINE std::string csv_header() {
  return "step,rule,schedule,segment,contribution,norm,weight,result_norm,orthogonality\n";
}

ADASUM_INLINE std::string to_csv(const report& r, long long step) {
  std::string text;
  for (std::size_t k = 0; k < r.segments(); ++k)
    for (std::size_t i = 0; i < r.contributions(); ++i)
      detail::append(text,
                     {step, ",", detail::csv_field(r.rule()), ",", detail::csv_field(r.schedule()), ",", k, ",", i, ",",
                      r.norm(i, k), ",", r.weight(i, k), ",", r.result_norm(k), ",", r.orthogonality(k), "\n"});
  return text;
}

ADASUM_INLINE std::string to_json(const report& r, long long step) {
  std::string text;
  detail::append(text, {"{\"step\":", step, ",\"rule\":"});
  detail::append_json_string(text, r.rule());
  text += ",\"schedule\":";
  detail::append_json_string(text, r.schedule());
  detail::append(text, {",\"wire\":\"", to_string(r.wire()), "\",\"contributions\":", r.contributions(),
                        ",\"bytes_sent\":", r.bytes_sent(), ",\"recombined_segments\":", r.recombined_segments(),
                        ",\"fallbacks\":", r.fallbacks(), ",\"orthogonality\":"});
  detail::append_json(text, r.orthogonality());
  const auto array = [&](std::string_view name, std::size_t count, auto&& append_one) {
    detail::append(text, {",\"", name, "\":"});
    detail::append_json_array(text, count, append_one);
  };
  const auto of_gradients = [&](std::size_t k, auto number) {
    detail::append_json_array(text, r.contributions(),
                              [&](std::size_t i) { detail::append_json(text, (r.*number)(i, k)); });
  };
  array("orthogonalities", r.segments(), [&](std::size_t k) { detail::append_json(text, r.orthogonality(k)); });
  array("result_norms", r.segments(), [&](std::size_t k) { detail::append_json(text, r.result_norm(k)); });
  array("norms", r.segments(), [&](std::size_t k) { of_gradients(k, &report::norm); });
  array("weights", r.segments(), [&](std::size_t k) { of_gradients(k, &report::weight); });
  const auto bad = r.nonfinite();
  array("nonfinite", bad.size(), [&](std::size_t i) {
    detail::append(text, {"{\"contribution\":", bad[i].rank, ",\"segment\":", bad[i].segment, "}"});
  });
  array("excluded", r.excluded().size(), [&](std::size_t i) { detail::append(text, {r.excluded()[i]}); });
  text += "}\n";
  return text;
}

}  // namespace adasum
#endif
