// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../core/concepts.hpp"
#include "../core/error.hpp"
#include "../core/scalar.hpp"
#include "../core/segments.hpp"
#include "../core/stage.hpp"
#include "gathering.hpp"

/// The check that all ranks are about to do the same thing.
namespace adasum::detail {

/// FNV-1a, of whole numbers.
constexpr std::uint64_t hash(const auto& numbers, std::uint64_t start = 0) {
  auto value = start ^ 14695981039346656037u;
  for (const auto number : numbers) value = (value ^ static_cast<std::uint64_t>(number)) * 1099511628211u;
  return value;
}

/// What one rank is about to do, as it travels to the others. Texts are cut to their fields.
struct intention {
  template <std::size_t N>
  using text = std::array<char, N>;

  std::uint64_t length = 0;
  std::uint64_t segments = 0;
  std::uint64_t segments_hash = 0;
  std::uint64_t schedule_hash = 0;
  text<16> scalar{};
  text<32> rule{};
  text<32> schedule{};
  text<32> inner_rule{};
  text<32> place{};  ///< where the gradient lies
  text<32> options{};
  text<32> space{};
  text<256> problem{};  ///< what is wrong with this rank's own input; empty if nothing

  template <std::size_t N>
  static void set(text<N>& field, std::string_view value) {
    field.fill('\0');
    std::ranges::copy(value.substr(0, N - 1), field.begin());
  }
  template <std::size_t N>
  static std::string get(const text<N>& field) {
    return field.data();
  }

  void set_segments(segments_view segs) {
    segments = segs.size();
    segments_hash = hash(segs.offsets());
  }
  /// The stages of all ranks, as every rank computes them, tell apart schedules of one name with different parameters.
  template <class Schedule>
  void add_stages_of(const Schedule& order, int size, const adasum::problem& what) {
    for (int rank = 0; rank < size; ++rank) add_stages(order.stages(rank, size, what));
  }
  void add_stages(const std::vector<stage>& stages) {
    for (const auto& level : stages) {
      schedule_hash = hash(level.members, schedule_hash);
      schedule_hash = hash(level.leaves, schedule_hash);
      schedule_hash = hash(level.sum_over, schedule_hash);
      schedule_hash = hash(std::array{level.survivors, level.held.begin, level.held.end, std::size_t{level.inner},
                                      std::size_t{level.placed}},
                           schedule_hash);
      for (const auto part : level.parts) schedule_hash = hash(std::array{part.begin, part.end}, schedule_hash);
    }
  }
};

/// What a rank means to do whenever it runs a plan of these; the length, and what is wrong, are added at each run.
/// @param place  where the gradient lies
template <scalar T, rule Rule, rule Inner, schedule Schedule, class Space>
intention intention_of(const Space& space, segments_view segments, std::string_view place, std::string_view choices) {
  intention mine;
  mine.set_segments(segments);
  mine.set(mine.scalar, to_string(format_of<T>));
  mine.set(mine.rule, Rule::name);
  mine.set(mine.schedule, Schedule::name);
  mine.set(mine.inner_rule, Inner::name);
  mine.set(mine.place, place);
  mine.set(mine.options, choices);
  std::string name(Space::name);
  if constexpr (requires { space.arithmetic(); }) name += " " + std::string(space.arithmetic());
  mine.set(mine.space, name);
  return mine;
}

/// This rank's stages. A schedule that cannot be built here is a problem to tell the others, if they compare what they
/// are about to do; until then its place is taken by one stage of all ranks, which always can be.
/// @param told  set to what is wrong; null if it is to be thrown
template <schedule Schedule, class Always>
std::vector<stage> stages_or_problem(const Schedule& order, int rank, int size, const problem& what,
                                     const Always& always, std::string* told) {
  try {
    return order.stages(rank, size, what);
  } catch (const bad_input& wrong) {
    if (!told) throw;
    *told = wrong.what();
    return always.stages(rank, size, what);
  }
}

/// @throws agreement_error if a rank has bad input, or if two ranks intend different things; the same on every rank
inline void require_agreement(std::span<const intention> all) {
  const auto of_rank = [](std::size_t r) { return "rank " + std::to_string(r); };
  std::string problems;
  for (std::size_t r = 0; r < all.size(); ++r)
    if (all[r].problem[0] != '\0')
      problems += (problems.empty() ? "" : "; ") + of_rank(r) + ": " + intention::get(all[r].problem);
  if (!problems.empty()) throw agreement_error(problems);

  // Texts are made when something differs; this check runs before every reduction.
  const auto compare = [&](const char* what, auto field, auto show) {
    for (std::size_t r = 1; r < all.size(); ++r)
      if (std::invoke(field, all[r]) != std::invoke(field, all[0]))
        throw agreement_error(std::string("adasum: the ranks disagree on the ") + what + ": rank 0 has " +
                              show(all[0]) + ", " + of_rank(r) + " has " + show(all[r]));
  };
  const auto text = [](auto field) {
    return [field](const intention& i) { return intention::get(std::invoke(field, i)); };
  };
  const auto number = [](auto field) {
    return [field](const intention& i) { return std::to_string(std::invoke(field, i)); };
  };
  const auto compare_text = [&](const char* what, auto field) { compare(what, field, text(field)); };
  compare_text("scalar type", &intention::scalar);
  compare("length of the gradient", &intention::length, number(&intention::length));
  compare("number of segments", &intention::segments, number(&intention::segments));
  compare("lengths of the segments", &intention::segments_hash, [](const intention& i) {
    return std::to_string(i.segments) + " segments with boundaries of hash " + std::to_string(i.segments_hash);
  });
  compare_text("rule", &intention::rule);
  compare_text("schedule", &intention::schedule);
  compare_text("inner rule of the schedule", &intention::inner_rule);
  compare_text("place of the gradient", &intention::place);
  compare("parameters of the schedule", &intention::schedule_hash, [](const intention& i) {
    return intention::get(i.schedule) + " with stages of hash " + std::to_string(i.schedule_hash);
  });
  compare_text("options", &intention::options);
  compare_text("execution space", &intention::space);
}

/// Every rank tells all others what it intends, and compares; blocks. The exchanges of the step `agree` (steps.hpp), so
/// that ranks may meet of which one is in a run, and another about to make a plan.
/// @throws agreement_error as above
template <class Space, class Comm>
void agree(const Space& space, const Comm& comm, const intention& mine, std::span<intention> all) {
  gathering exchanges(std::as_bytes(std::span(&mine, 1)), comm.rank(), comm.size(), std::as_writable_bytes(all));
  std::vector<outgoing> out;
  std::vector<incoming> in;
  for (; exchanges.next(out, in); out.clear(), in.clear()) comm.exchange(space, out, in);
  require_agreement(all);
}

}  // namespace adasum::detail
