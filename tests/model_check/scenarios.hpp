// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <vector>

#include "scenario.hpp"

namespace adasum::test::model {

/// With each fault that makes sense, in one rank's first run.
inline void add_with_faults(std::vector<scenario>& all, scenario base, std::vector<std::size_t> ranks) {
  all.push_back(base);
  for (const auto rank : ranks)
    for (const auto where : {point::before_first, point::after_first, point::after_sum, point::before_last,
                             point::impatient_first, point::impatient_sum, point::impatient_last}) {
      const bool has_no_sum = base.what == work::copies || base.what == work::unmeasured;
      if (has_no_sum && (where == point::after_sum || where == point::impatient_sum)) continue;
      if (base.what == work::copies && (where == point::before_last || where == point::impatient_first)) continue;
      // Who stays behind adds nothing.
      if (base.what == work::behind && rank % 2 == 1 && (where == point::after_sum || where == point::impatient_sum))
        continue;
      auto one = base;
      one.faults[0] = {where, rank, 1};
      all.push_back(one);
    }
}

/// All that two ranks may do, once.
inline std::vector<scenario> scenarios_of_two() {
  std::vector<scenario> all;
  add_with_faults(all, {}, {0});
  for (const bool blocking : {false, true}) {
    all.push_back({.what = work::votes, .blocking = blocking});
    all.push_back({.what = work::votes, .blocking = blocking, .differs = {1, 1}});
    all.push_back({.what = work::votes, .blocking = blocking, .differs = {1, 1, false}});
    all.push_back({.what = work::votes, .blocking = blocking, .differs = {.rank = 1, .only_waits = true}});
    all.push_back({.what = work::setups, .runs = 3, .blocking = blocking});
    all.push_back({.what = work::votes, .blocking = blocking, .faults = {{{point::before_first, 0, 1}, {}}}});
    all.push_back({.what = work::votes, .blocking = blocking, .leaves = {0, 1}});
  }
  add_with_faults(all, {.what = work::copies, .runs = 3}, {0});
  all.push_back({.what = work::sums});
  all.push_back({.what = work::sums, .faults = {{{point::after_sum, 0, 1}, {}}}});
  for (const bool blocking : {false, true}) {
    all.push_back({.runs = 1, .blocking = blocking, .different_plans = true});
    all.push_back({.blocking = blocking, .leaves = {0, 1}});
    all.push_back({.what = work::copies, .blocking = blocking, .leaves = {0, 1}});
    // It drops its plan after having failed.
    all.push_back({.blocking = blocking, .faults = {{{point::after_first, 0, 1}, {}}}, .leaves = {0, 1}});
    all.push_back({.one_address_space = false,
                   .blocking = blocking,
                   .gives_up_leaving = true,
                   .faults = {{{point::after_first, 0, 1}, {}}}});
  }
  all.push_back({.blocking = true});
  all.push_back({.what = work::copies, .runs = 3, .blocking = true});
  all.push_back({.blocking = true, .faults = {{{point::after_first, 0, 1}, {}}}});
  all.push_back({.runs = 1, .blocking = true, .faults = {{{point::impatient_first, 0, 1}, {}}}});
  all.push_back({.runs = 1, .blocking = true, .faults = {{{point::impatient_last, 0, 1}, {}}}});
  all.push_back({.one_address_space = false});
  return all;
}

/// Three ranks, which have too many states to see them all; and what goes by levels. Walked through at random.
inline std::vector<scenario> scenarios_of_more() {
  std::vector<scenario> all;
  for (const bool blocking : {false, true}) {
    for (const std::size_t radix : {8u, 2u})
      for (const auto what : {work::in_place, work::unmeasured, work::copies, work::sums}) {
        const scenario base{.what = what, .ranks = 3, .radix = radix, .blocking = blocking};
        add_with_faults(all, base, {0, 2});
        all.push_back(base);
        all.back().leaves = {1, 1};
        all.push_back(base);
        all.back().faults = {{{point::before_first, 0, 1}, {point::after_first, 1, 1}}};
      }
    for (const std::size_t radix : {8u, 2u})
      for (const bool in_full : {false, true})
        all.push_back(
            {.what = work::votes, .ranks = 3, .radix = radix, .blocking = blocking, .differs = {1, 1, in_full}});
    all.push_back({.what = work::votes, .ranks = 3, .blocking = blocking, .differs = {.rank = 1, .only_waits = true}});
    all.push_back({.what = work::setups, .ranks = 3, .blocking = blocking});
    add_with_faults(all, {.what = work::levels, .ranks = 4, .blocking = blocking}, {0, 3});
    const scenario behind{.what = work::behind, .ranks = 4, .blocking = blocking};
    add_with_faults(all, behind, {0, 1, 2});
    all.push_back(behind);
    all.back().leaves = {1, 1};
  }
  return all;
}

/// What takes longer.
inline std::vector<scenario> large_scenarios_of_two() {
  std::vector<scenario> all;
  for (const bool blocking : {false, true}) {
    for (const bool one_address_space : {true, false}) {
      add_with_faults(all, {.one_address_space = one_address_space, .blocking = blocking}, {0, 1});
      add_with_faults(
          all, {.what = work::copies, .runs = 3, .one_address_space = one_address_space, .blocking = blocking}, {0, 1});
    }
    add_with_faults(all, {.what = work::sums, .blocking = blocking}, {0, 1});
    // It fails, goes on, and fails again.
    all.push_back(
        {.runs = 3, .blocking = blocking, .faults = {{{point::after_first, 0, 1}, {point::before_first, 0, 2}}}});
    all.push_back({.blocking = blocking, .faults = {{{point::after_first, 0, 1}, {point::after_sum, 1, 1}}}});
    all.push_back({.what = work::copies,
                   .runs = 3,
                   .one_address_space = false,
                   .blocking = blocking,
                   .gives_up_leaving = true,
                   .faults = {{{point::after_first, 0, 1}, {}}}});
  }
  return all;
}

}  // namespace adasum::test::model
