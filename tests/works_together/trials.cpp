// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "trials.hpp"

#include <cstdint>
#include <string_view>
#include <type_traits>

#include "erased_rule.hpp"

namespace adasum::test {

namespace {

trial_result try_one(const any_communicator& comm, const setting& where, const combination& one) {
  if (one.type != element::of_float || one.space != host_space::serial) return try_plan_of_other_types(comm, where, one);
  if (one.by_node) return try_plan_by_node(comm, where, one);
  if (!has_every_call(one.rule_name())) return try_plan_of_floats(comm, where, one);
  return visit_erased(rule_named(one.rule), [&]<class Rule>(const Rule& rule, const auto&) -> trial_result {
    if constexpr (std::is_same_v<Rule, rules::adasum_linear>)
      return {trial_result::kind::wrong, "is compiled with plans alone"};
    else
      return try_every_call(comm, where, one, rule);
  });
}

/// "recursive_halving" of "recursive_halving{.radix = 4}", and what is around it.
std::string family_of(const combination& one) {
  return one.by_node ? "hierarchical" : std::string(one.schedule->text.substr(0, one.schedule->text.find('{')));
}

/// As a row or column of a table, whose names have no commas.
std::string name_of_call(const combination& one) {
  std::string name(to_string(one.call));
  std::erase(name, ',');
  return name;
}

/// What a combination shows of two of the things that were chosen; `word` is "right", or how it was refused.
void note_pairs(const combination& one, const setting& where, const std::string& word, findings& found) {
  const auto rule = one.rule_name();
  const auto schedule = family_of(one), call = name_of_call(one);
  if (word == of_float_only.word())
    return found.note("elements × wire formats", to_string(one.type), to_string(one.choices.wire), word);
  if (word == no_shared_memory.word()) return found.note("schedules × communicators", schedule, where.name, word);
  found.note(one.has_shard ? "rules × schedules, of shards" : "rules × schedules", rule, schedule, word);
  if (word != "right") return;
  found.note("schedules × communicators", schedule, where.name, word);
  if (!one.by_node && !one.has_shard) found.note("calls × schedules", call, schedule, word);
  found.note("calls × rules", call, rule, word);
  if (one.space != host_space::serial) return;
  found.note("elements × wire formats", to_string(one.type), to_string(one.choices.wire), word);
}

/// Options that were seen to act: an error on all ranks, a gradient that was left out, elements in 16 bits, ….
void note_options(const combination& one, const setting& where, const trial_result& came, int ranks, findings& found) {
  const auto& choices = one.choices;
  const auto acts = [&](std::string_view option, bool seen) {
    if (seen && ranks > 1) found.note("calls × options", name_of_call(one), option, "right");
  };
  acts("check_agreement", one.disagrees && came.text == "agreement_error");
  acts("nonfinite", one.not_finite && choices.nonfinite != nonfinite_policy::propagate);
  acts("wire", came.rounded);
  // A call that makes no plan that is kept sends messages; the same with one would work in the memory of threads.
  acts("keep_plan", one.call == call_of_ranks::combine_allreduce && one.schedule->text == "automatic" && !one.has_shard &&
                        where.name == "thread_communicator" && came.came == trial_result::kind::right &&
                        !choices.keep_plan && came.schedule != "shared_memory");
}

void note(const combination& one, const setting& where, const trial_result& came, int ranks, findings& found) {
  using enum trial_result::kind;
  if (came.came == refused) {
    found.count("refused, as they should be");
    return note_pairs(one, where, came.text, found);
  }
  found.count(came.came == right ? "right" : "an error on all ranks, as it should be");
  if (came.came == right) note_pairs(one, where, "right", found);
  note_options(one, where, came, ranks, found);
}

/// Rank 0 gets what the others have. @return whether all have the same
bool same_on_all_ranks(const any_communicator& comm, const std::vector<std::uint64_t>& mine) {
  const detail::host_space host;
  bool same = true;
  for (int rank = 1; rank < comm.size(); ++rank) {
    if (comm.rank() == rank) {
      const outgoing out{0, std::as_bytes(std::span(mine))};
      comm.exchange(host, std::span(&out, 1), {});
    } else if (comm.rank() == 0) {
      std::vector<std::uint64_t> theirs(mine.size());
      const incoming in{rank, std::as_writable_bytes(std::span(theirs))};
      comm.exchange(host, {}, std::span(&in, 1));
      same = same && theirs == mine;
    }
  }
  return same;
}

}  // namespace

std::vector<std::string> try_combinations(const any_communicator& comm, const setting& where,
                                          std::span<const combination> all, findings& found) {
  std::vector<std::string> wrong;
  std::vector<std::uint64_t> bits;
  for (const auto& one : all) {
    if (to_text(one).find(wanted_combinations()) == std::string::npos) continue;
    const auto came = try_one(comm, where, one);
    if (came.came == trial_result::kind::wrong)
      wrong.push_back(std::to_string(comm.size()) + " ranks of " + where.name + " · " + to_text(one) + ": " + came.text);
    else
      note(one, where, came, comm.size(), found);
    bits.push_back(came.bits);
  }
  if (!same_on_all_ranks(comm, bits)) wrong.push_back(where.name + ": ranks have different results");
  return wrong;
}

}  // namespace adasum::test
