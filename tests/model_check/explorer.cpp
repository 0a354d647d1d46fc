// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "explorer.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "instrumentation.hpp"

namespace adasum::test::model {

explorer* explorer::current = nullptr;

// ── exploring ──

finding explorer::explore(const scenario& one, std::size_t weakened, std::size_t most_states) {
  current = this;
  memory_ = {};  // other scenarios have atomics elsewhere
  scenario_ = one;
  weakened_ = weakened;
  most_messages_ = {};
  finding found;
  do {
    found = explore_once(most_states);
  } while (found.problem.empty() && found.complete && knew_too_few_messages_);
  return found;
}

finding explorer::walk(const scenario& one, std::size_t weakened, std::size_t paths) {
  current = this;
  memory_ = {};  // other scenarios have atomics elsewhere
  scenario_ = one;
  weakened_ = weakened;
  most_messages_.fill(static_cast<std::size_t>(-1));
  traces_ = false;
  finding found;
  std::vector<state> path;
  std::uint64_t random = 1;
  std::size_t goes_on = 0;
  for (; found.states < paths && found.problem.empty(); ++found.states) {
    path.clear();
    begin();
    while (memory_.problem().empty() && !all_ended()) {
      path.push_back({decisions(), 0});
      auto& last = path.back();
      if (last.decisions.empty()) break;
      random = mixed(random, last.decisions.size());
      if (random % 8 == 0) goes_on = (random >> 8) % one.ranks;
      const auto is_other = [&](const decision& each) { return each.rank != goes_on; };
      if (!std::all_of(last.decisions.begin(), last.decisions.end(), is_other)) std::erase_if(last.decisions, is_other);
      last.next = (random >> 16) % last.decisions.size() + 1;
      decide(last.decisions[last.next - 1]);
    }
    found.problem = !memory_.problem().empty() ? memory_.problem()
                    : all_ended()              ? problem_at_end()
                                               : "ranks wait for ever";
  }
  if (!found.problem.empty()) found.trace = explain(path);
  return found;
}

finding explorer::explore_once(std::size_t most_states) {
  traces_ = knew_too_few_messages_ = false;
  bool is_first_path = true;
  seen_.clear();
  std::vector<state> path;
  finding found;
  const auto end = [&](std::string problem) {
    found.problem = std::move(problem);
    if (!found.problem.empty()) found.trace = explain(path);
    found.states = seen_.size();
    return found;
  };
  begin();
  for (;;) {
    if (!memory_.problem().empty()) return end(memory_.problem());
    if (all_ended()) {
      auto problem = problem_at_end();
      if (!problem.empty()) return end(std::move(problem));
      if (std::exchange(is_first_path, false) && knew_too_few_messages_) return found;
    } else if (seen_.insert(hash()).second) {
      if (seen_.size() > most_states) {
        found.complete = false;
        return end("");
      }
      path.push_back({decisions(), 0});
      if (path.back().decisions.empty()) return end("ranks wait for ever");
    }
    // Goes on from the last state of the path that has another way to go.
    const bool goes_on = !path.empty() && path.back().next == 0;
    while (!path.empty() && path.back().next == path.back().decisions.size()) path.pop_back();
    if (path.empty()) return end("");
    if (!goes_on) {
      begin();
      for (std::size_t i = 0; i + 1 < path.size(); ++i) decide(path[i].decisions[path[i].next - 1]);
    }
    auto& last = path.back();
    decide(last.decisions[last.next++]);
  }
}

std::string explorer::explain(const std::vector<state>& path) {
  traces_ = true;
  trace_.clear();
  begin();
  for (const auto& one : path)
    if (one.next > 0) decide(one.decisions[one.next - 1]);
  traces_ = false;
  for (std::size_t rank = 0; rank < scenario_.ranks; ++rank) {
    const auto& one = ranks_[rank];
    if (one.is != rank_at_work::status::ended)
      trace_ += "rank " + std::to_string(rank) + (one.is == rank_at_work::status::stuck ? " waits" : " goes on") +
                " at " + sites_.describe(one.site) + "\n";
  }
  return trace_;
}

void explorer::begin() {
  std::memset(shared_memory(), 0, shared_bytes);
  memory_.reset(scenario_.ranks);
  forget_outcomes();
  forget_allocations();
  for (std::size_t rank = 0; rank < scenario_.ranks; ++rank) {
    auto& one = ranks_[rank];
    if (!one.stack) one.stack = std::make_unique<char[]>(stack_bytes);
    one.is = rank_at_work::status::asks;
    one.label = one.history = 0;
    one.readings.clear();
    one.nothing_new = 0;
    one.time_flies = one.stores = one.has_begun = false;
    one.seconds = 1;
    getcontext(&one.context);
    one.context.uc_stack.ss_sp = one.stack.get();
    one.context.uc_stack.ss_size = stack_bytes;
    one.context.uc_link = nullptr;
    makecontext(&one.context, run_current, 0);
    run(rank);
  }
  run_those_with_news();
}

void explorer::run_current() {
  auto& self = *current;
  is_ranks_code = true;
  run_rank(self.scenario_, self.at_work_);
  is_ranks_code = false;
  self.ranks_[self.at_work_].is = rank_at_work::status::ended;
  self.go_back_to_explorer();
}

[[gnu::noipa]] void explorer::run(std::size_t rank) {
  at_work_ = rank;
  auto& one = ranks_[rank];
  if (__builtin_setjmp(own_.data()) != 0) return;
  if (!std::exchange(one.has_begun, true)) setcontext(&one.context);
  jump(one.continuation);
}
[[gnu::noipa]] void explorer::go_back_to_explorer() {
  if (__builtin_setjmp(ranks_[at_work_].continuation.data()) == 0) jump(own_);
}
/// Not in the function that calls __builtin_setjmp.
[[gnu::noipa]] void explorer::jump(std::array<void*, 5>& to) { __builtin_longjmp(to.data(), 1); }

bool explorer::has_news(const rank_at_work& one) const {
  return std::any_of(one.readings.begin(), one.readings.end(),
                     [&](const reading& each) { return memory_.newest(each.location) > each.message; });
}
void explorer::run_those_with_news() {
  for (bool again = true; std::exchange(again, false);)
    for (std::size_t rank = 0; rank < scenario_.ranks; ++rank) {
      if (ranks_[rank].is != rank_at_work::status::stuck || !has_news(ranks_[rank])) continue;
      ranks_[rank].nothing_new = 0;
      run(rank);
      again = true;
    }
}

void explorer::decide(const decision& one) {
  ranks_[one.rank].chosen = one.message;
  run(one.rank);
  run_those_with_news();
}

std::vector<explorer::decision> explorer::decisions() {
  std::vector<decision> found;
  for (std::size_t rank = 0; rank < scenario_.ranks; ++rank) {
    auto& one = ranks_[rank];
    if (one.is != rank_at_work::status::asks) continue;
    if (one.stores) {
      found.push_back({rank, 0});
      continue;
    }
    auto first = memory_.oldest(rank, one.location, one.order);
    at_work_ = rank;
    // To read the same old message a third time is what has been decided on before.
    if (const auto* known = last_reading(one.site, one.location))
      first = std::max(first, known->message + known->again);
    std::vector<decision> of_rank;
    for (auto message = first; message <= memory_.newest(one.location); ++message) of_rank.push_back({rank, message});
    // Nothing that another rank does will have an influence on this one: no other order needs to be tried.
    const bool has_last = memory_.newest(one.location) == most_messages_[one.location];
    const bool changes_total_order =
        one.order == std::memory_order_seq_cst && !memory_.is_newest_in_order(one.location);
    if ((has_last || memory_.writer(one.location) == rank) && !changes_total_order) return of_rank;
    found.insert(found.end(), of_rank.begin(), of_rank.end());
  }
  return found;
}

std::uint64_t explorer::hash() const {
  auto all = memory_.hash([&](std::size_t rank) { return ranks_[rank].is != rank_at_work::status::ended; });
  for (std::size_t rank = 0; rank < scenario_.ranks; ++rank) {
    const auto& one = ranks_[rank];
    all = mixed(all, static_cast<std::uint64_t>(one.is));
    if (one.is == rank_at_work::status::ended) continue;
    std::uint64_t readings = 0;
    for (const auto& each : one.readings)
      readings ^= mixed(each.site, each.location << 16 | each.message << 1 | each.again);
    all = mixed(mixed(mixed(all, one.history), readings), one.site << 8 | one.location);
  }
  return all;
}

bool explorer::all_ended() const {
  return std::all_of(ranks_.begin(), ranks_.begin() + static_cast<std::ptrdiff_t>(scenario_.ranks),
                     [](const rank_at_work& one) { return one.is == rank_at_work::status::ended; });
}
std::string explorer::problem_at_end() const {
  const auto* problem = find_wrong_outcome(scenario_);
  return problem ? problem : "";
}

// ── what ranks do ──

explorer::reading* explorer::last_reading(std::uintptr_t site, std::size_t location) {
  for (auto& one : ranks_[at_work_].readings)
    if (one.site == site && one.location == location) return &one;
  return nullptr;
}
/// One step weaker at the call site that is to be weakened.
std::memory_order explorer::order_at(std::uintptr_t site, std::memory_order order, std::memory_order next_weaker) {
  if (weakened_ == call_sites::none || sites_.of(site) != weakened_) return order;
  return order == std::memory_order_seq_cst ? next_weaker : std::memory_order_relaxed;
}

std::uint64_t explorer::load(std::uintptr_t site, std::size_t word, std::memory_order order) {
  using status = rank_at_work::status;
  auto& self = ranks_[at_work_];
  const auto location = memory_.location_of(word);
  self.location = location;
  self.site = site;
  while (const auto* known = last_reading(site, location)) {
    if (known->message < memory_.newest(location)) break;
    if (self.nothing_new++ < patience) return memory_.value(location, known->message);
    // What it has not read again is not what it waits for.
    std::erase_if(self.readings, [&](const reading& one) { return memory_.newest(one.location) > one.message; });
    self.is = status::stuck;
    go_back_to_explorer();
  }
  sites_.note(site, name_of_word(word * 8, true), false, order);
  self.order = order_at(site, order, std::memory_order_acquire);
  self.is = status::asks;
  go_back_to_explorer();
  auto* const known = last_reading(site, location);
  if (known && known->message == self.chosen) {
    known->again = true;
  } else {
    if (known) self.readings.clear();
    self.readings.push_back({site, location, self.chosen});
  }
  self.nothing_new = 0;
  self.history = mixed(self.history, mixed(site, location << 16 | self.chosen));
  const auto value = memory_.load(at_work_, location, self.chosen, self.order);
  if (traces_) trace(site, self.chosen < memory_.newest(location) ? "reads (old)" : "reads", word, value);
  return value;
}

void explorer::store(std::uintptr_t site, std::size_t word, std::uint64_t value, std::memory_order order) {
  auto& self = ranks_[at_work_];
  sites_.note(site, name_of_word(word * 8, true), true, order);
  const auto location = memory_.location_of(word);
  order = order_at(site, order, std::memory_order_release);
  if (order == std::memory_order_seq_cst) {
    self.site = site;
    self.location = location;
    self.stores = true;
    self.is = rank_at_work::status::asks;
    go_back_to_explorer();
    self.stores = false;
  }
  memory_.store(at_work_, location, value, order);
  if (memory_.newest(location) > most_messages_[location]) {
    most_messages_[location] = memory_.newest(location);
    knew_too_few_messages_ = true;
  }
  self.readings.clear();
  self.nothing_new = 0;
  if (traces_) trace(site, "stores", word, value);
}

void explorer::access(std::uintptr_t site, std::size_t word, bool writes) {
  if (!memory_.access(at_work_, word, writes) || !memory_.problem().empty()) return;
  memory_.note(std::string("a data race on ") + name_of_word(word * 8, false));
  if (traces_) trace(site, writes ? "writes, in a race," : "reads, in a race,", word, 0);
}

void explorer::trace(std::uintptr_t site, const char* what, std::size_t word, std::uint64_t value) {
  const bool is_race = std::strstr(what, "race") != nullptr;
  trace_ += "rank " + std::to_string(at_work_) + " " + what + " the " + name_of_word(word * 8, !is_race) + " of rank " +
            std::to_string(rank_of_word(word * 8)) + ": " + std::to_string(value >> 20) + " · 2²⁰ + " +
            std::to_string(value & 0xfffff) + "  (" + sites_.describe(site) + ")\n";
}

void explorer::checkpoint(std::uint64_t label) {
  auto& self = ranks_[at_work_];
  self.label = self.history = label;
  self.readings.clear();
}
void explorer::in_loop() {
  auto& self = ranks_[at_work_];
  self.history = mixed(self.label, self.location);
}
void explorer::require(bool good, const char* what) {
  if (!good) memory_.note(what);
}
void explorer::let_time_fly(bool does) { ranks_[at_work_].time_flies = does; }
std::int64_t explorer::seconds() {
  auto& self = ranks_[at_work_];
  if (self.time_flies) self.seconds += 3600;
  return self.seconds;
}

}  // namespace adasum::test::model
