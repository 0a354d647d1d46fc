// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../../core/error.hpp"
#include "../../core/input_checks.hpp"
#include "../../core/node_groups.hpp"
#include "../../core/options.hpp"
#include "../../core/parts.hpp"
#include "../../core/scalar.hpp"
#include "../../core/segments.hpp"
#include "../../core/stage.hpp"
#include "../../schedules/all_to_all.hpp"
#include "../../schedules/parts_of_result.hpp"
#include "../../schedules/shard_grid.hpp"
#include "../references/communicator_ref.hpp"
#include "../references/erased.hpp"
#include "../references/rule_ref.hpp"
#include "../references/schedule_ref.hpp"
#include "../references/space_ref.hpp"
#include "agreement.hpp"
#include "call_signature.hpp"
#include "engine_settings.hpp"
#include "plan_arguments.hpp"
#include "result_layout.hpp"
#include "shard_exchange.hpp"

namespace adasum::detail {

/// What all plans are made of, the blocking, the posted and the enqueued: the call's arguments, the schedule's stages for
/// this rank, and the agreement of the ranks on them.
class plan_inputs {
 public:
  /// @throws bad_input  boundaries that do not begin at 0 or decrease; options or parts that cannot be
  explicit plan_inputs(const plan_arguments& given)
      : given_(given),
        offsets_(given.segments.offsets().begin(), given.segments.offsets().end()),
        part_offsets_(given.to.offsets.begin(), given.to.offsets.end()) {
    if (given.mine) shard_ = *given.mine;
    given_.segments = segments_view{};  // these are the caller's, and may go
    given_.to.offsets = {};
    given_.mine = nullptr;
    require_boundaries(given.segments, given.call);
    require_valid(given.choices, given.call);
    given.to.require_valid(length(), size(), given.call);
    remember_nodes(given.comm.nodes());
  }

  const space_ref& space() const { return given_.space; }
  const communicator_ref& comm() const { return given_.comm; }
  const rule_ref& rule() const { return given_.rule; }
  const schedule_ref& schedule() const { return given_.schedule; }
  const basic_options<true>& choices() const { return given_.choices; }
  const char* call() const { return given_.call; }
  plan_purpose purpose() const { return given_.purpose; }
  segments_view segments() const { return segments_view{offsets_}; }
  std::size_t length() const { return offsets_.back(); }
  result_layout to() const { return {given_.to.in_parts, part_offsets_}; }
  /// What this rank gets of the result.
  index_range wanted() const { return to().wanted_by(static_cast<std::size_t>(comm().rank()), length(), size()); }
  /// Whether a call with these arguments would set up the same.
  bool is_for(const plan_arguments& call) const {
    return std::ranges::equal(offsets_, call.segments.offsets()) && choices() == call.choices &&
           schedule().equals(call.schedule) && space().equals(call.space) && rule().is_of_type(call.rule) &&
           comm().is_of_type(call.comm) && to().gives_the_same_as(call.to, length(), size());
  }

  /// Whether all ranks are of one node, as far as the communicator says.
  bool is_one_node() const { return nodes_.empty() && !apart_; }

  /// Whether ranks compare what they are about to do.
  bool compares() const { return choices().check_agreement && size() > 1; }
  /// Whether they do so at the beginning of a run: calls have done so before (plan::meet).
  bool compares_in_runs() const { return compares() && purpose() == plan_purpose::of_user; }
  /// Whether they meet there. Where there are no elements, nothing else would tell of a rank that fails.
  bool meets_in_runs() const {
    const bool is_empty = length() == 0 && !shard_ && size() > 1;
    return compares_in_runs() || (is_empty && purpose() == plan_purpose::of_user);
  }

  /// Where gradients are cut: ranks find out who has which shard. Collective. @param meet  meet(): see collective_setup
  /// @throws bad_input  what they say does not fit together: the same on all ranks
  void learn_shards(std::string_view location, function_ref<void()> meet) {
    if (!shard_) return;
    begin_signature(location);
    known_ = exchange_shards(comm(), *shard_, segments(), call(), meet);
    nodes_.clear();
    apart_ = false;
  }

  /// This rank's stages. A schedule that cannot be built here is a problem to tell the others, if they compare what they
  /// are about to do; until then its place is taken by one stage of all ranks, which always can be.
  std::vector<stage> stages(bool in_place = false) {
    if (problem_.empty()) try {
        auto found = stages_of(schedule(), in_place);
        if (!found.empty()) return found;
        if (gradients() > 1)
          throw bad_input({call(), ": the schedule ", schedule().name(), " has no stage for rank ", own_gradient(),
                           " of ", gradients()});
      } catch (const bad_input& wrong) {
        if (!compares()) throw;
        problem_ = wrong.what();
      }
    return stages_of(schedules::all_to_all{}, in_place);
  }
  /// How the schedule would use memory that ranks share. Where it cannot be built, its place is taken by messages.
  shared_memory_use uses_shared_memory() const {
    if (!problem_.empty()) return shared_memory_use::none;
    const auto use = schedule().uses_shared_memory(gradients(), input());
    if (!shard_) return use;
    if (use == shared_memory_use::required)
      throw bad_input({call(), ": ", schedule().name(),
                       " works in shared memory only, but shards are reduced by messages; choose another schedule"});
    return shared_memory_use::none;
  }
  engine_settings settings(bool in_place) {
    engine_settings found{.space = space(),
                          .comm = comm(),
                          .rule = rule(),
                          .inner_rule = schedule().inner_rule(),
                          .has_inner_rule = schedule().has_inner_rule(),
                          .segments = segments(),
                          .stages = stages(in_place),
                          .schedule_name = schedule().chosen_name(gradients(), input(in_place))};
    found.gradients = known_.whole;
    if (problem_.empty()) found.leaf_ranks = schedule().leaf_ranks(gradients(), input(in_place));
    found.measure = choices().measure == measuring::always;
    found.nonfinite = choices().nonfinite;
    found.transport = {choices().wire, choices().timeout, in_place, shard_.has_value()};
    if (to().in_parts) found.parts = parts(in_place);
    return found;
  }

  // ── agreement ──
  /// What this rank does at every run, and memory for what the others do. Where ranks do not compare, only what decides
  /// about messages, and no memory.
  void prepare_agreement(std::string_view location) {
    if (size() == 1) return;
    begin_signature(location);
    if (!compares()) {
      // One rank's stages mostly tell schedules of one name with different parameters apart.
      add_stages(signature_, schedule().stages(0, gradients(), input()));
      return;
    }
    // Of all ranks, as every rank computes them.
    for (int gradient = 0; problem_.empty() && gradient < gradients(); ++gradient)
      add_stages(signature_, schedule().stages(gradient, gradients(), input()));
    signature_.set(signature_.problem, problem_);
  }
  /// What this rank sets up.
  hashed_signature signature() {
    if (!intent_) intent_ = signature_.intent();
    return {signature_, *intent_};
  }
  /// From here on, calls run the plan that was kept.
  void begin_runs() {
    signature_.plan_is_kept = 1;
    intent_.reset();
  }
  void begin_buffer() {
    signature_.set(signature_.activity, "making plan.buffer()");
    intent_.reset();
  }
  /// For one run. @param problem  what is wrong with this rank's input; empty if nothing
  /// @param location  where the gradient lies, if not where it lay when the plan was made; else empty
  hashed_signature signature_of_run(std::size_t length, const std::string& problem, std::string_view location) {
    const bool is_the_same =
        intent_of_run_ && problem.empty() && length == length_of_run_ && location == location_of_run_;
    if (!is_the_same) {
      of_run_ = signature_;
      of_run_.set(of_run_.activity, "running a plan");
      if (!shard_) of_run_.length = length;
      if (!location.empty()) of_run_.set(of_run_.location, location);
      if (!problem.empty()) of_run_.set(of_run_.problem, problem);
      length_of_run_ = length;
      location_of_run_ = location;
      intent_of_run_ = of_run_.intent();
    }
    const hashed_signature found{of_run_, *intent_of_run_};
    if (!problem.empty()) intent_of_run_.reset();
    return found;
  }
  agreement_memory& memory() { return memory_; }
  /// Compares now; blocks. @throws agreement_error
  void agree(hashed_signature mine) {
    detail::agree(comm(), agreement(mine, true, segments(), comm().rank(), size(), memory_));
  }
  /// What is wrong with a gradient for this plan; empty if nothing. @param plan  what the user calls with it
  std::string problem_with(const std::byte* elements, std::size_t count, const char* plan) const {
    return problem_with_gradient(space(), elements, count, length(),
                                 purpose() == plan_purpose::of_user ? plan : call());
  }
  const std::string& schedule_problem() const { return problem_; }

 private:
  int size() const { return given_.comm.size(); }
  /// How many gradients are combined: what a schedule takes for the number of ranks; and this rank's place among them.
  int gradients() const { return shard_ ? static_cast<int>(known_.whole.replicas) : size(); }
  int own_gradient() const { return shard_ ? shard_->replica : comm().rank(); }

  /// What the schedule may look at. @param in_place  see schedule_input
  schedule_input input(bool in_place = false) const {
    return {.length = shard_ ? known_.longest : length(),
            .element_size = space().element_size(),
            .segments = segments().size(),
            .along_tree = rule().follows_tree(),
            .on_device = space().is_device(),
            .once = purpose() == plan_purpose::one_call,
            .in_place = in_place,
            .nodes = nodes_,
            .apart = apart_,
            .whole_length = known_.longest};
  }

  /// What this rank means to do whenever it runs this plan; the length, and what is wrong, are added at each run.
  /// @param location  where the gradient lies
  void begin_signature(std::string_view location) {
    signature_ = {};
    intent_.reset();
    intent_of_run_.reset();
    signature_.set(signature_.activity, purpose() == plan_purpose::of_user ? "making a plan"
                                        : purpose() == plan_purpose::kept  ? "a call that keeps its plan"
                                                                           : "a call that keeps no plan");
    signature_.length = length();
    signature_.segments = segments().size();
    signature_.segments_hash = hash(segments().offsets());
    signature_.set(signature_.scalar, to_string(space().format()));
    const auto inner = schedule().inner_rule();
    signature_.rule = signature_of(rule().name(), rule().parameters());
    signature_.schedule = signature_of(schedule().name(), schedule().parameters());
    signature_.inner_rule = signature_of(inner.name(), inner.parameters());
    signature_.set(signature_.location, location);
    signature_.set(signature_.options, describe(choices()));
    signature_.recombines_in_double = space().copies_are_double();
    signature_.on_device = space().is_device();
    to().describe(signature_, length(), size());
    if (compares()) {
      signature_.set(signature_.space, space().arithmetic());
      if (memory_.empty()) memory_ = agreement_memory(size());
    }
    if (!shard_) return;
    // Ranks that have different shards do the same: who has which is found out apart.
    signature_.set(signature_.shards, "shards of gradients");
    signature_.length = signature_.segments_hash = 0;
  }

  /// For each rank only where that says something: several nodes, one of which has several ranks.
  void remember_nodes(std::vector<int> node_of_rank) {
    if (node_of_rank.empty()) return;
    if (node_of_rank.size() != static_cast<std::size_t>(size()))
      throw bad_input({call(), ": the communicator's nodes() has ", counted(node_of_rank.size(), "number"), " for ",
                       counted(size(), "rank")});
    if (std::ranges::count(node_of_rank, node_of_rank.front()) == size()) return;
    apart_ = node_groups(node_of_rank).size() == node_of_rank.size();
    if (!apart_) nodes_ = std::move(node_of_rank);
  }

  /// Of the result, to each rank. By the stages that stages() gives.
  parts_of_result parts(bool in_place) const {
    const auto asked = input(in_place);
    const auto stages_of_rank = [&](int rank) {
      return problem_.empty() ? schedule().stages(rank, size(), asked)
                              : schedules::all_to_all{}.stages(rank, size(), asked);
    };
    parts_of_result found{to().wanted(length(), size()), {}};
    if (size() == 1) return found;
    const auto at_end = ranks_at_end(stages_of_rank(comm().rank()), size(), stages_of_rank);
    found.to_owners = exchange_of_parts(at_end, found.wanted, nodes_).of(comm().rank(), at_end.size());
    return found;
  }

  std::vector<stage> stages_of(const schedule_ref& order, bool in_place) const {
    auto asked = input(in_place);
    if (!shard_) asked.whole_length = 0;
    auto found = shard_ ? stages_of_shard(order, asked) : order.stages(comm().rank(), size(), asked);
    if (!asked.along_tree && std::ranges::count(found, false, &stage::inner) > 1)  // rules::any_rule, shards
      throw bad_input({call(), ": the schedule ", order.name(), " combines gradients pair by pair, and the rule ",
                       rule().name(), " needs all inner products at once: use schedules::all_to_all, ",
                       "schedules::shared_memory or schedules::automatic"});
    if (!order.has_inner_rule() && std::ranges::count(found, true, &stage::inner) > 0)
      throw bad_input({call(), ": the schedule ", order.name(), " marks stages as inner: only schedules::hierarchical ",
                       "has a rule for these"});
    return found;
  }
  /// @throws bad_input  shards of different lengths would have ranks meet in different ways
  std::vector<stage> stages_of_shard(const schedule_ref& order, schedule_input asked) const {
    const auto replica = own_gradient();
    const auto of_longest = order.stages(replica, gradients(), asked);
    asked.length = length();
    auto found = order.stages(replica, gradients(), asked);
    if (!meet_alike(found, of_longest))
      throw bad_input({call(), ": the schedule ", order.name(),
                       " makes different stages for shards of different lengths (it should choose by ",
                       "schedule_input::of_whole())"});
    for (auto& one : found) one = known_.grid.widen(std::move(one), shard_->index);
    return found;
  }

  plan_arguments given_;
  std::vector<std::size_t> offsets_;
  std::vector<int> nodes_;  // see schedule_input
  bool apart_ = false;      // see schedule_input
  std::vector<std::size_t> part_offsets_;
  std::optional<shard> shard_;  // this rank's
  known_shards known_;
  std::string problem_;                // with the schedule
  call_signature signature_, of_run_;  // of_run_: of the last run
  std::optional<std::uint64_t> intent_, intent_of_run_;
  std::size_t length_of_run_ = 0;
  std::string_view location_of_run_;
  agreement_memory memory_;
};

}  // namespace adasum::detail
