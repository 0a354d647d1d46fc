// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string>

#include <adasum/testing/simulation/scheduler.hpp>

#include "support/oracle_range.hpp"
#include "support/random_gradients.hpp"

/// One simulated reduction, as a few numbers: what is reduced, how, among whom, and what goes wrong.
namespace adasum::test {

enum class simulated_scalar { of_float, of_double, of_half, count };
enum class simulated_rule { adasum, interrupted_adasum, sum, mean, mean_of_units, count };
/// Those before all_to_all have several stages.
enum class simulated_order {
  doubling,
  halving,
  halving_by_4,
  halving_by_8,
  levels_of_nodes,
  all_to_all,
  automatic,
  by_messages,
  shared,
  count
};
/// A single call, or a plan: by operator(), by start() and test(), some ranks so and some so, in its buffer.
enum class simulated_call { single, plan, tested, mixed, buffer, count };
/// Those of simulated_fault::kind come first.
enum class simulated_trouble {
  nothing,
  failing_point,
  short_of_memory,
  withheld_message,
  departure,
  no_shared_memory,
  late_look,
  cut_off,
  one_allocation,   // number `at` of one step fails
  all_allocations,  // and all after it, in that step
  bad_length,       // of a gradient
  other_segments,   // of one rank's plan
  abandoned,        // a plan that is destroyed in flight
  count
};

struct simulated_case {
  std::uint64_t seed = 0;  ///< of turns and messages
  std::uint64_t data = 0;  ///< of gradients and segments
  std::uint64_t ranks = 1, length = 0, segments = 1;
  std::uint64_t nodes = 0;  ///< over which ranks are dealt out, one after the other; 0: they are on one
  std::uint64_t scalar = 0, rule = 0, order = 0, call = 0;
  std::uint64_t kind = 0;          ///< of gradients
  std::uint64_t huge = 0;          ///< whether a segment's squares leave the range of double
  std::uint64_t not_a_number = 0;  ///< one more than the rank whose gradient holds NaN or Inf; 0: none
  std::uint64_t checked = 0, when_needed = 0, nonfinite = 0, wire = 0;
  std::uint64_t trouble = 0, culprit = 0, at = 0;
  std::uint64_t step = 0;  ///< in which allocations fail: 0 setting up, 1 the first run, 2 the second

  simulated_trouble what() const { return static_cast<simulated_trouble>(trouble); }
  bool uses_plan() const { return call != static_cast<std::uint64_t>(simulated_call::single); }
  /// Whether a segment may be combined vector by vector. (Segments of a few elements may cancel by chance; that products
  /// are not finite does not say why.)
  bool may_recombine() const {
    return huge != 0 || segments > 1 || length < 16 || not_a_number != 0 ||
           kind != static_cast<std::uint64_t>(gradient_kind::independent);
  }
  /// Whether a message is lost in the runs of a plan that has been made, where all ranks learn of it. (That is: an empty one
  /// arrives.) A message by which they meet beforehand may be the last: then the one that lacks it knows, and the others do
  /// not.
  bool is_lost_in_run() const {
    return what() == simulated_trouble::withheld_message && uses_plan() && checked == 0 && step > 0 && !may_recombine();
  }
  /// Whether ranks may wait until a timeout: for a rank that is cut off, and where a segment is combined vector by vector,
  /// among sums that no stage calls for (simulated_run::waits_unscheduled).
  bool may_need_a_timeout(bool waits_unscheduled) const {
    if (what() == simulated_trouble::cut_off) return true;
    return waits_unscheduled && may_recombine() &&
           (what() == simulated_trouble::withheld_message || what() == simulated_trouble::departure);
  }
  /// Whether a rank that throws leaves, as programs do that end then.
  bool throwing_ranks_leave() const {
    return what() == simulated_trouble::departure || what() == simulated_trouble::cut_off ||
           (what() == simulated_trouble::withheld_message && !is_lost_in_run());
  }

  friend bool operator==(const simulated_case&, const simulated_case&) = default;
};

/// visit(name, number) for all of them, those first that a smaller case should be rid of first.
template <class Case, class Visitor>
void for_each_number(Case& one, Visitor&& visit) {
  visit("ranks", one.ranks);
  visit("length", one.length);
  visit("segments", one.segments);
  visit("trouble", one.trouble);
  visit("nodes", one.nodes);
  visit("not_a_number", one.not_a_number);
  visit("huge", one.huge);
  visit("wire", one.wire);
  visit("nonfinite", one.nonfinite);
  visit("when_needed", one.when_needed);
  visit("checked", one.checked);
  visit("kind", one.kind);
  visit("scalar", one.scalar);
  visit("rule", one.rule);
  visit("call", one.call);
  visit("order", one.order);
  visit("culprit", one.culprit);
  visit("step", one.step);
  visit("at", one.at);
  visit("data", one.data);
  visit("seed", one.seed);
}

inline std::string to_text(const simulated_case& one) {
  std::string text;
  for_each_number(one, [&](const char* name, std::uint64_t number) {
    if (number != 0) text += (text.empty() ? "" : " ") + (name + ("=" + std::to_string(number)));
  });
  return text;
}
/// Of "name=number name=number ...". Nothing if it is not that.
inline std::optional<simulated_case> case_from_text(const std::string& text) {
  simulated_case one;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const auto split = word.find('=');
    if (split == std::string::npos) return {};
    bool known = false;
    for_each_number(one, [&](const char* name, std::uint64_t& number) {
      if (word.substr(0, split) != name) return;
      const auto* const end = word.data() + word.size();
      known = std::from_chars(word.data() + split + 1, end, number).ptr == end;
    });
    if (!known) return {};
  }
  return one;
}

/// Makes what does not go together fit.
inline void repair(simulated_case& one) {
  const auto keep_below = [](std::uint64_t& number, auto bound) {
    if (number >= static_cast<std::uint64_t>(bound)) number = 0;
  };
  if (one.ranks == 0) one.ranks = 1;
  if (one.segments == 0) one.segments = 1;
  keep_below(one.scalar, simulated_scalar::count);
  keep_below(one.rule, simulated_rule::count);
  keep_below(one.order, simulated_order::count);
  keep_below(one.call, simulated_call::count);
  keep_below(one.trouble, simulated_trouble::count);
  keep_below(one.kind, all_gradient_kinds.size());
  keep_below(one.culprit, one.ranks);
  keep_below(one.nonfinite, 3);
  keep_below(one.wire, 3);
#ifndef ADASUM_TEST_EIGEN
  keep_below(one.scalar, simulated_scalar::of_half);
#endif
  keep_below(one.nodes, one.ranks + 1);
  const auto order = static_cast<simulated_order>(one.order);
  if (order == simulated_order::shared) one.nodes = 0;  // all ranks must share memory
  if (one.not_a_number > one.ranks || one.length == 0) one.not_a_number = 0;
  if (one.scalar != static_cast<std::uint64_t>(simulated_scalar::of_double) || !real_holds_squares) one.huge = 0;
  if (one.scalar != static_cast<std::uint64_t>(simulated_scalar::of_float)) one.wire = 0;
  // A rule of the whole Gram matrix needs one stage of all ranks.
  if (static_cast<simulated_rule>(one.rule) == simulated_rule::mean_of_units && order < simulated_order::all_to_all)
    one.order = static_cast<std::uint64_t>(simulated_order::all_to_all);
  // Only plans can be destroyed in flight; and all ranks reduce what is in their plans' buffers, or none does.
  const auto trouble = static_cast<simulated_trouble>(one.trouble);
  const auto call = static_cast<simulated_call>(one.call);
  const bool is_own = trouble == simulated_trouble::abandoned || trouble == simulated_trouble::bad_length;
  if ((trouble == simulated_trouble::abandoned && call == simulated_call::single) ||
      (is_own && call == simulated_call::buffer))
    one.call = static_cast<std::uint64_t>(simulated_call::plan);
}

/// The case that follows from a number.
inline simulated_case generated_case(std::uint64_t seed) {
  detail::simulated::rng random(detail::simulated::rng::mixed(seed ^ 0xCA5E));
  const auto below = [&](auto bound) {
    return static_cast<std::uint64_t>(random.below(static_cast<std::size_t>(bound)));
  };
  simulated_case one;
  one.seed = random.bits() >> 32;
  one.data = random.bits() >> 48;
  const auto size = below(100);
  one.ranks = size < 70 ? 1 + below(9) : size < 94 ? 10 + below(24) : size < 99 ? 34 + below(31) : 65 + below(66);
  const auto longest = one.ranks > 33 ? 200u : 600u;
  one.length = random.one_in(4) ? below(12) : random.one_in(12) && one.ranks < 10 ? 1000 + below(6000) : below(longest);
  one.segments = 1 + below(random.one_in(3) ? 9 : 3);
  one.scalar = below(simulated_scalar::count);
  one.rule = below(simulated_rule::count);
  one.order = below(simulated_order::count);
  // In shared memory, each rank looks at all others again and again.
  const bool in_memory = one.order >= static_cast<std::uint64_t>(simulated_order::automatic) ||
                         one.order == static_cast<std::uint64_t>(simulated_order::levels_of_nodes);
  if (in_memory && one.ranks > 20 && !random.one_in(20)) one.ranks = 2 + one.ranks % 19;
  one.call = below(simulated_call::count);
  one.kind = below(all_gradient_kinds.size());
  one.nodes = random.one_in(4) ? below(one.ranks + 1) : 0;
  one.huge = random.one_in(4);
  one.not_a_number = random.one_in(6) ? 1 + below(one.ranks) : 0;
  one.checked = random.one_in(2);
  one.when_needed = random.one_in(4);
  one.nonfinite = random.one_in(2) ? below(3) : 0;
  one.wire = random.one_in(3) ? below(3) : 0;
  one.trouble = random.one_in(5) ? 0 : below(simulated_trouble::count);
  one.culprit = below(one.ranks);
  one.at = below(std::size_t{1} << random.below(8));
  one.step = below(3);
  repair(one);
  return one;
}

/// The smallest case found that still fails. @param fails  fails(case), asked at most so many times
template <class Fails>
simulated_case shrunk(simulated_case one, const Fails& fails, int most_tries = 400) {
  for (bool smaller = true; smaller && most_tries > 0;) {
    smaller = false;
    for_each_number(one, [&](const char* name, std::uint64_t& number) {
      const std::string field = name;
      const auto before = number;
      for (const std::uint64_t less :
           {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}, before / 4, before / 2, before - 1}) {
        if (less >= before || number != before || most_tries <= 0) continue;
        if (field == "trouble" && less != 0) continue;  // that would be another one
        --most_tries;
        auto candidate = one;
        for_each_number(candidate, [&](const char* other, std::uint64_t& value) {
          if (field == other) value = less;
        });
        repair(candidate);
        if (candidate == one || !fails(candidate)) continue;
        one = candidate;
        smaller = true;
        break;
      }
    });
  }
  return one;
}

}  // namespace adasum::test
