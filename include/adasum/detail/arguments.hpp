// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <array>
#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "../core/concepts.hpp"
#include "../core/error.hpp"
#include "../core/options.hpp"
#include "../core/parts.hpp"
#include "../core/segments.hpp"

/// The arguments that may follow the data of a call: segments, a rule, a schedule, options, each at most once and in
/// any order. They are told apart by what they are.
///
/// A call has four such parameters, with defaults:
///
///     template <class Gradient, class A = unnamed_options, class B = unnamed_options, …>
///     void call(Gradient&& gradient, A&& a = {}, B&& b = {}, …)
///
/// A list in braces, {.wire = …}, has no type of its own: it makes the default, as an argument that is absent does.
namespace adasum::detail {

template <class>
constexpr bool is_never = false;

/// A number where options are expected: a length, as in call(gradient, {600, 400}).
struct length_in_braces {
  length_in_braces() = default;
  template <std::integral Length>
  constexpr length_in_braces(Length) {
    static_assert(is_never<Length>,
                  "write adasum::segments{600, 400} (or parts): only then are numbers taken for lengths");
  }
  friend constexpr bool operator==(const length_in_braces&, const length_in_braces&) = default;
};

/// What a list in braces becomes, {.wire = …}: the members of basic_options. Ahead of them is what takes numbers, so that
/// the compiler says what to write instead.
template <bool CheckedByDefault>
struct list_of_options {
  using options_type = basic_options<CheckedByDefault>;

  std::array<length_in_braces, 64> lengths = {};
  bool check_agreement = CheckedByDefault;
  measuring measure = options_type{}.measure;
  nonfinite_policy nonfinite = options_type{}.nonfinite;
  wire_format wire = options_type{}.wire;
  decltype(options_type::timeout) timeout = options_type{}.timeout;
  bool keep_plan = options_type{}.keep_plan;

  options_type with_name() const { return {check_agreement, measure, nonfinite, wire, timeout, keep_plan}; }
  friend constexpr bool operator==(const list_of_options&, const list_of_options&) = default;
};
using unnamed_options = list_of_options<options::checked_by_default>;

template <class A>
constexpr bool is_options = false;
template <bool Checked>
constexpr bool is_options<basic_options<Checked>> = true;
template <class A>
constexpr bool is_unnamed_options = false;
template <bool Checked>
constexpr bool is_unnamed_options<list_of_options<Checked>> = true;

enum class argument { segments, rule, schedule, options, parts, shard, absent, unknown };

template <class A>
consteval argument argument_of() {
  if constexpr (is_unnamed_options<A>)
    return argument::absent;
  else if constexpr (is_options<A>)
    return argument::options;
  else if constexpr (std::same_as<A, parts>)
    return argument::parts;
  else if constexpr (std::same_as<A, shard>)
    return argument::shard;
  else if constexpr (std::convertible_to<const A&, segments_view>)
    return argument::segments;
  else if constexpr (schedule<A>)
    return argument::schedule;
  else if constexpr (rule<A>)
    return argument::rule;
  else
    return argument::unknown;
}

/// Whether the argument is any of these; if not, the compiler says what it might have been.
template <class A>
consteval bool is_known_argument() {
  constexpr bool known = argument_of<A>() != argument::unknown;
  if constexpr (known)
    return true;
  else if constexpr (requires { &A::stages; } && !comparable<A>)
    static_assert(comparable<A>, "this schedule has members, but no operator==: write `friend bool operator==(const "
                                 "my_schedule&, const my_schedule&) = default;`");
  else if constexpr (requires { &A::stages; })
    static_assert(schedule<A>, "adasum: this argument has stages, but lacks something else that a schedule has");
  else if constexpr (requires { &A::operator(); } && !requires { A::name; })
    static_assert(rule<A>, "write static constexpr std::string_view name = \"…\": a rule has one");
  else if constexpr (requires { &A::operator(); })
    static_assert(
        rule<A>,
        "write pair_weights operator()(const pair_gram&), or void operator()(gram_view, std::span<double>): a "
        "rule has one of these");
  else if constexpr (std::convertible_to<const A&, std::string_view>)
    static_assert(known,
                  "adasum: for a rule that a text names, pass adasum::rules::named(text), of <adasum/rules/named.hpp>");
  else if constexpr (std::ranges::range<A> || std::is_integral_v<A>)
    static_assert(known, "write adasum::segments(lengths) (or parts): only then are numbers taken for lengths");
  else
    static_assert(known, "adasum: this argument is neither segments, a rule, a schedule nor options");
  return false;
}

/// Which arguments a call takes.
struct taken_arguments {
  bool segments = true, rule = true, schedule = true, options = true;
  bool parts = false;
  bool shard = false;
};
inline constexpr taken_arguments only_segments{.rule = false, .schedule = false, .options = false};

/// Whether these arguments can follow the data of a call; if not, the compiler says why in one line.
template <taken_arguments Taken, class... As>
consteval bool are_arguments() {
  constexpr auto count = []([[maybe_unused]] argument kind) {
    return (std::size_t{argument_of<std::remove_cvref_t<As>>() == kind} + ... + 0);
  };
  constexpr auto segments = count(argument::segments), rules = count(argument::rule),
                 schedules = count(argument::schedule), choices = count(argument::options),
                 dealt_out = count(argument::parts), cut = count(argument::shard);
  static_assert(segments <= 1, "adasum: the segments are given twice");
  static_assert(rules <= 1, "adasum: a rule is given twice");
  static_assert(schedules <= 1, "adasum: a schedule is given twice");
  static_assert(choices <= 1, "adasum: the options are given twice");
  static_assert(dealt_out <= 1, "adasum: the parts are given twice");
  static_assert(cut <= 1, "adasum: the shard is given twice");
  static_assert(Taken.shard || cut == 0,
                "adasum: this call takes no shard; adasum_allreduce, combine_allreduce and plan_allreduce do");
  static_assert(Taken.parts || dealt_out == 0,
                "adasum: this call takes no parts; reduce_scatter does. (Lengths of segments are adasum::segments)");
  static_assert(Taken.segments || segments == 0, "adasum: the segments have been given already");
  static_assert(Taken.rule || rules == 0,
                "write combine, combine_allreduce (or _reduce_scatter) or a plan for another rule: this call takes none");
  static_assert(Taken.schedule || schedules == 0, "adasum: this call takes no schedule; it sends nothing");
  static_assert(Taken.options || choices == 0, "adasum: this call takes no options");
  constexpr bool known = (is_known_argument<std::remove_cvref_t<As>>() && ...);
  return known && segments <= (Taken.segments ? 1 : 0) && rules <= (Taken.rule ? 1 : 0) &&
         schedules <= (Taken.schedule ? 1 : 0) && choices <= (Taken.options ? 1 : 0) &&
         dealt_out <= (Taken.parts ? 1 : 0) && cut <= (Taken.shard ? 1 : 0);
}

/// The argument of this kind as it was given, or the default.
template <argument Kind, class Default>
constexpr Default&& argument_or(Default&& otherwise) {
  return std::forward<Default>(otherwise);
}
template <argument Kind, class Default, class A, class... As>
constexpr decltype(auto) argument_or(Default&& otherwise, A&& a, As&&... as) {
  if constexpr (argument_of<std::remove_cvref_t<A>>() == Kind)
    return std::forward<A>(a);
  else
    return argument_or<Kind>(std::forward<Default>(otherwise), std::forward<As>(as)...);
}

/// The segments among the arguments, or the given ones.
template <class... As>
segments_view segments_or(segments_view otherwise, const As&... as) {
  return argument_or<argument::segments>(otherwise, as...);
}

/// The argument of this type, a shard or parts; null if there is none.
template <class Type, class... As>
const Type* find_argument(const As&... as) {
  const Type* found = nullptr;
  const auto note = [&](const auto& a) {
    if constexpr (std::same_as<std::remove_cvref_t<decltype(a)>, Type>) found = &a;
  };
  (note(as), ...);
  return found;
}

/// The options among the arguments, with a name or in braces.
/// @throws bad_input  they are given twice, once or both times in braces, which no compiler sees
template <class... As>
auto options_among(const char* call, const As&... as) {
  unnamed_options list;
  bool has_list = false;
  const auto require_one = [call](bool another) {
    if (another) throw bad_input({call, ": the options are given twice"});
  };
  [[maybe_unused]] const auto note = [&](const auto& a) {
    if constexpr (is_unnamed_options<std::remove_cvref_t<decltype(a)>>) {
      if (a == unnamed_options{}) return;
      require_one(std::exchange(has_list, true));
      list = a;
    }
  };
  (note(as), ...);
  if constexpr ((is_options<As> || ...)) {
    require_one(has_list);
    return argument_or<argument::options>(options{}, as...);
  } else {
    return list.with_name();
  }
}

/// What a plan is made for: segments, their lengths in braces, or a length, which is one segment. What can fail is left to
/// visit(), where other ranks can be told.
class segments_or_length {
 public:
  segments_or_length(segments_view cut) : cut_(cut) {}
  segments_or_length(const segments& cut) : cut_(cut) {}
  template <std::integral Length>
  segments_or_length(Length length)
      : whole_{0, static_cast<std::size_t>(length)}, cut_(whole_), negative_(std::cmp_less(length, 0)) {}
  template <std::integral Length>
  segments_or_length(std::initializer_list<Length> lengths)
      : cut_(whole_), lengths_(lengths.begin()), count_(lengths.size()), listed_(&from_list<Length>) {}
  template <std::ranges::range Range>
    requires(!std::convertible_to<const Range&, segments_view>)
  segments_or_length(const Range&) : cut_(whole_) {
    static_assert(is_never<Range>,
                  "a plan is made for segments or a length: write adasum::segments(lengths), or gradient.size()");
  }
  segments_or_length(const segments_or_length&) = delete;
  segments_or_length& operator=(const segments_or_length&) = delete;

  /// @return visit(segments_view). @throws bad_input  a negative length
  template <class Visitor>
  auto visit(Visitor&& visitor) const {
    if (negative_)
      throw bad_input({"adasum: the length of a gradient is negative (", static_cast<std::ptrdiff_t>(whole_[1]), ")"});
    if (!listed_) return visitor(cut_);
    const segments cut = listed_(lengths_, count_);
    return visitor(segments_view(cut));
  }

 private:
  template <class Length>
  static segments from_list(const void* lengths, std::size_t count) {
    const auto* const first = static_cast<const Length*>(lengths);
    return segments(first, first + count);
  }

  std::array<std::size_t, 2> whole_{};
  segments_view cut_;
  bool negative_ = false;
  const void* lengths_ = nullptr;
  std::size_t count_ = 0;
  segments (*listed_)(const void*, std::size_t) = nullptr;
};

/// Parameters that are given by their lengths, or by the segments of each: one element for each of them.
template <class Parameters>
std::vector<segments> segments_of_each(const Parameters& parameters) {
  std::vector<segments> cut;
  if constexpr (std::is_convertible_v<const Parameters&, segments_view>) {
    const segments_view whole_ones = parameters;
    for (std::size_t k = 0; k < whole_ones.size(); ++k) cut.push_back(segments::whole(whole_ones.range(k).size()));
  } else {
    for (const auto& one : parameters)
      if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(one)>>)
        cut.push_back(segments(std::span(&one, 1)));
      else
        cut.push_back(one);
  }
  return cut;
}

}  // namespace adasum::detail
