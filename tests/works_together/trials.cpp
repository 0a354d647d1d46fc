// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "trials.hpp"

#include <cstdint>
#include <string_view>

namespace adasum::test {

namespace {

trial_result try_one(const any_communicator& comm, const setting& where, const combination& one) {
  if (one.by_node) return try_by_node(comm, where, one);
  const bool usual = one.type == element::of_float && one.space == host_space::serial;
  return usual ? try_in_floats(comm, where, one) : try_in_other_types(comm, where, one);
}

/// "recursive_halving" of "recursive_halving{.radix = 4}", and what is around it.
std::string family_of(const combination& one) {
  const std::string family(one.schedule->text.substr(0, one.schedule->text.find('{')));
  return one.by_node ? "hierarchical over " + family : family;
}

/// What a combination that was right, or an error as it should be, shows of two of the things that were chosen.
void note_what_worked(const combination& one, const trial_result& came, int ranks, findings& found) {
  const auto rule = one.rule_name(), call = to_string(one.call);
  const auto schedule = family_of(one);
  const auto& choices = one.choices;
  if (!came.how.empty() || one.by_node)
    found.note("rules × schedules", rule, schedule, one.by_node ? "right" : came.how);
  found.note("rules × calls", rule, call, "right");
  found.note("schedules × calls", schedule, call, "right");
  found.note("elements × spaces", to_string(one.type), to_string(one.space), "right");
  if (one.has_shard) found.note("rules × shards", rule, schedule, "right");

  const auto takes = [&](std::string_view argument, bool given) {
    if (given) found.note("calls × arguments", call, argument, "right");
  };
  takes("segments", true);
  takes("another rule", rule != "adasum");
  takes("a schedule", schedule != "automatic");
  takes("a shard", one.has_shard);
  takes("parts", one.call == call_of_ranks::plan_reduce_scatter);
  takes("a root", one.call == call_of_ranks::combine_reduce || one.call == call_of_ranks::plan_reduce);

  if (ranks == 1) return;
  if (!came.inf.empty()) found.note("rules × Inf", rule, to_string(choices.nonfinite), came.inf);
  if (choices.measure == measuring::when_needed && !one.by_node)
    found.note("rules × options", rule, "measure = when_needed", came.measured ? "measured" : "not measured");
  const bool may_be_kept = one.call == call_of_ranks::combine_allreduce && one.schedule->text == "automatic" &&
                           !one.by_node && !one.has_shard && came.came == trial_result::kind::right;
  if (may_be_kept && choices.keep_plan)  // a call that keeps no plan sends messages
    found.note("rules × options", rule, "keep_plan", came.schedule == "shared_memory" ? "kept" : "not kept");
  if (choices.wire != wire_format::same && came.came == trial_result::kind::right) {
    found.note("schedules × wire", schedule, to_string(choices.wire), came.rounded ? "rounded" : "nothing is rounded");
    if (came.rounded) found.note("rules × options", rule, "wire", "rounded");
  }
  const auto acts = [&](std::string_view option, bool seen) {
    if (seen) found.note("calls × options", call, option, "right");
  };
  acts("check_agreement", one.disagrees && came.text == "agreement_error");
  acts("measure", choices.measure == measuring::when_needed && !came.measured && came.came == trial_result::kind::right);
  acts("nonfinite", !came.inf.empty() && choices.nonfinite != nonfinite_policy::propagate);
  acts("wire", came.rounded);
  acts("keep_plan", may_be_kept && !choices.keep_plan && came.schedule != "shared_memory");
}

void note(const combination& one, const trial_result& came, int ranks, findings& found) {
  using enum trial_result::kind;
  if (came.came == right || came.came == raised) {
    found.count(came.came == right ? "right" : "an error on all ranks, as it should be");
    return note_what_worked(one, came, ranks, found);
  }
  found.count("refused, " + came.text);
  if (came.text == of_float_only.word())
    found.note("elements × options", to_string(one.type), "wire", came.text);
  else if (came.text == pair_by_pair.word())
    found.note("rules × schedules", one.rule_name(), family_of(one), came.text);
  else if (one.has_shard)
    found.note("rules × shards", one.rule_name(), family_of(one), came.text);
  else
    found.note("settings × schedules", "no shared memory", family_of(one), came.text);
}

/// Rank 0 gets what the others have. @return whether all have the same
bool same_on_all_ranks(const any_communicator& comm, const std::vector<std::uint64_t>& mine) {
  const detail::any::host host;
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
                                          std::span<const combination> all, findings& found, std::string& log) {
  std::vector<std::string> wrong;
  std::vector<std::uint64_t> bits;
  for (const auto& one : all) {
    const auto came = try_one(comm, where, one);
    const std::string what = came.came == trial_result::kind::wrong ? "wrong: " : "";
    const auto line = where.name + " · " + to_text(one) + ": " + (came.text.empty() ? "right" : what + came.text);
    log += line + (came.how.empty() ? "" : ", " + std::string(came.how)) + '\n';
    if (!what.empty())
      wrong.push_back(line);
    else
      note(one, came, comm.size(), found);
    bits.push_back(came.bits);
  }
  if (!same_on_all_ranks(comm, bits)) wrong.push_back(where.name + ": ranks have different results");
  return wrong;
}

}  // namespace adasum::test
