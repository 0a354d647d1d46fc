// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "../../core/concepts.hpp"
#include "../../core/error.hpp"
#include "../../core/gradient.hpp"
#include "../../core/input_checks.hpp"
#include "../../core/node_groups.hpp"
#include "../../core/optional_members.hpp"
#include "../../core/options.hpp"
#include "../../core/shard.hpp"
#include "../../schedule/all_to_all.hpp"
#include "../../schedule/parts_of_result.hpp"
#include "../../schedule/shard_grid.hpp"
#include "agreement.hpp"
#include "destination.hpp"
#include "engine_settings.hpp"
#include "shard_exchange.hpp"
#include "stages_of_pieces.hpp"

namespace adasum::detail {

/// Whether values of a type tell whether they are the same.
template <class A>
constexpr bool has_equality = std::is_empty_v<A> || std::equality_comparable<A>;
template <class A>
bool are_equal(const A& a, const A& b) {
  if constexpr (std::is_empty_v<A>)
    return true;
  else
    return a == b;
}

/// What a plan is made for: the user, who runs it; one call, which then throws it away; or calls that are alike, for which
/// the communicator keeps it (core/kept_plans.hpp).
enum class plan_purpose { of_user, one_call, kept };

/// What all plans are made of, the blocking, the posted and the enqueued: the call's arguments, the schedule's stages for
/// this rank, and the agreement of the ranks on them.
template <scalar T, class Space, class Comm, rule Rule, schedule Schedule>
class plan_setup {
 public:
  using inner_rule = inner_rule_t<Schedule>;

  /// @param call    the user's, for messages
  /// @param pieces  the segments of each, if the gradient comes in pieces and is weighed as a whole (planned_stage)
  /// @param to      which ranks get the result; for a gradient in pieces or in shards, all of it every rank
  /// @param mine    this rank's shard; null if it has a gradient of its own
  /// @throws bad_input  boundaries that do not begin at 0 or decrease; options that cannot be; parts or a root that cannot
  template <bool Checked>
  plan_setup(Space space, Comm comm, segments_view segments, Schedule schedule, const basic_options<Checked>& choices,
             const char* call, std::vector<index_range> pieces = {}, const destination& to = {},
             const shard* mine = nullptr)
      : space_(std::move(space)),
        comm_(std::move(comm)),
        schedule_(std::move(schedule)),
        offsets_(segments.offsets().begin(), segments.offsets().end()),
        options_{choices.check_agreement, choices.measure, choices.nonfinite, choices.wire, choices.timeout},
        call_(call),
        pieces_(std::move(pieces)),
        to_(to.with({})),
        part_offsets_(to.offsets().begin(), to.offsets().end()) {
    if (mine) shard_ = *mine;
    require_boundaries(segments, call);
    require_valid(choices, call);
    to.require_valid(length(), comm_.size(), call_);
    if constexpr (requires {
                    { comm_.nodes() } -> std::convertible_to<std::span<const int>>;
                  })
      remember_nodes(comm_.nodes());
  }

  const Space& space() const { return space_; }
  const Comm& comm() const { return comm_; }
  const basic_options<true>& choices() const { return options_; }
  const char* call() const { return call_; }
  segments_view segments() const { return segments_view{offsets_}; }
  std::size_t length() const { return offsets_.back(); }

  destination to() const { return to_.with(part_offsets_); }
  /// What this rank gets of the result.
  index_range wanted() const { return to().wanted_by(static_cast<std::size_t>(comm_.rank()), length(), comm_.size()); }

  /// Whether a call with these arguments would set up the same.
  bool is_for(const Space& space, segments_view segments, const Schedule& schedule, const basic_options<true>& choices,
              const destination& to) const {
    return std::ranges::equal(offsets_, segments.offsets()) && options_ == choices && are_equal(schedule_, schedule) &&
           are_equal(space_, space) && this->to().gives_the_same_as(to, length(), comm_.size());
  }

  /// Whether ranks compare what they are about to do.
  bool compares() const { return options_.check_agreement && comm_.size() > 1; }
  /// Whether they do so at the beginning of a run: calls have done so before (plan_state::meet).
  bool compares_in_runs() const { return compares() && purpose == plan_purpose::of_user; }
  /// Whether they meet there. Where there are no elements, nothing else would tell of a rank that fails.
  bool meets_in_runs() const {
    const bool is_empty = length() == 0 && !shard_ && comm_.size() > 1;
    return compares_in_runs() || (is_empty && purpose == plan_purpose::of_user);
  }

  /// What the schedule may look at. @param in_place  see schedule_input
  schedule_input input(bool in_place = false) const {
    return {.length = shard_ ? longest_shard_ : length(),
            .element_size = sizeof(T),
            .segments = segments().size(),
            .along_tree = tree_rule<Rule> && pieces_.empty(),
            .on_device = device_space<Space>,
            .once = purpose == plan_purpose::one_call,
            .in_place = in_place,
            .sums = shard_ ? 0 : vector_sums<Schedule, Rule>,
            .nodes = nodes_,
            .apart = apart_,
            .whole_length = longest_shard_};
  }
  /// The gradients that are combined: what a schedule takes for the number of ranks, and this rank's place among them.
  int gradients() const { return shard_ ? static_cast<int>(gradients_.replicas) : comm_.size(); }
  int own_gradient() const { return shard_ ? shard_->replica : comm_.rank(); }

  /// Where gradients are cut: ranks find out who has which shard. Collective. @param meet  meet(): see joint_set_up
  /// @throws bad_input  what they say does not fit together: the same on all ranks
  template <class Meet>
  void learn_shards(const Rule& rule, std::string_view location, const Meet& meet) {
    if (!shard_) return;
    shard_exchange others(space_, comm_, *shard_, segments(), call_);
    begin_signature(rule, location);
    meet();
    others.tell_places();
    grid_ = others.grid();
    longest_shard_ = others.longest();
    others.prepare_lengths(grid_);
    meet();
    others.add_lengths();
    gradients_ = std::move(others).whole();
    nodes_.clear();
    apart_ = false;
  }

  /// This rank's stages. A schedule that cannot be built here is a problem to tell the others, if they compare what they
  /// are about to do; until then its place is taken by one stage of all ranks, which always can be.
  std::vector<planned_stage> stages(bool in_place = false) {
    if (problem_.empty()) try {
        auto found = stages_of(schedule_, in_place);
        if (!found.empty()) return found;
        if (gradients() > 1)
          throw bad_input(std::string(call_) + ": the schedule " + std::string(Schedule::name) +
                          " has no stage for rank " + std::to_string(own_gradient()) + " of " +
                          std::to_string(gradients()));
      } catch (const bad_input& wrong) {
        if (!compares()) throw;
        problem_ = wrong.what();
      }
    return stages_of(schedules::all_to_all{}, in_place);
  }

  /// The name of the schedule that runs.
  std::string_view name(bool in_place = false) const {
    if constexpr (requires { schedule_.chosen_name(gradients(), input()); })
      return schedule_.chosen_name(gradients(), input(in_place));
    else
      return Schedule::name;
  }

  /// How the schedule would use memory that ranks share.
  shared_memory_use uses_shared_memory() const {
    if constexpr (requires { schedule_.uses_shared_memory(gradients(), input()); }) {
      const auto use = schedule_.uses_shared_memory(gradients(), input());
      if (shard_) {
        if (use == shared_memory_use::required)
          throw bad_input(std::string(call_) + ": " + std::string(Schedule::name) +
                          " works in shared memory only, but shards are reduced by messages; choose another schedule");
        return shared_memory_use::none;
      }
      // In pieces, one stage of all ranks or none. Beside shared memory, some stages would send messages: who fails in one
      // piece waits until nobody is at work there, while the others wait for its messages of the next. And levels have
      // numbers, which the pieces would use up.
      const bool works_in_pieces = use != shared_memory_use::buffer && !some_stage_is_grouped();
      return pieces_.empty() || works_in_pieces ? use : shared_memory_use::none;
    } else
      return shared_memory_use::none;
  }

  engine_settings<inner_rule> settings(bool in_place) {
    engine_settings<inner_rule> found{stages(in_place), name(in_place), inner_rule_of(schedule_)};
    found.gradients = gradients_;
    if constexpr (requires { schedule_.leaf_ranks(gradients(), input()); })
      if (problem_.empty()) found.leaf_ranks = schedule_.leaf_ranks(gradients(), input(in_place));
    found.measure = options_.measure == measuring::always;
    found.nonfinite = options_.nonfinite;
    found.transport = {options_.wire, options_.timeout, in_place, shard_.has_value()};
    if (!to_.is_every_rank()) found.parts = parts(in_place);
    return found;
  }

  // ── agreement ──

  /// What this rank does at every run, and memory for what the others do. Where ranks do not compare, only what decides
  /// about messages, and no memory.
  void prepare_agreement(const Rule& rule, std::string_view location) {
    if (comm_.size() == 1) return;
    begin_signature(rule, location);
    if (!compares()) {
      // One rank's stages mostly tell schedules of one name with different parameters apart.
      signature_.add_stages(schedule_.stages(0, gradients(), input()));
      return;
    }
    if (problem_.empty()) signature_.add_stages_of(schedule_, gradients(), input());
    signature_.set(signature_.problem, problem_);
  }
  /// What this rank sets up.
  const call_signature& signature() const { return signature_; }
  /// From here on, calls run the plan that was kept.
  void begin_runs() { signature_.plan_is_kept = 1; }
  void begin_buffer() { signature_.set(signature_.activity, "making plan.buffer()"); }
  /// For one run. @param problem  what is wrong with this rank's input; empty if nothing
  call_signature signature(std::size_t length, const std::string& problem) const {
    auto mine = signature_;
    mine.set(mine.activity, "running a plan");
    if (!shard_) mine.length = length;
    if (!problem.empty()) mine.set(mine.problem, problem);
    return mine;
  }
  agreement_memory& memory() { return memory_; }
  /// Compares now; blocks. @throws agreement_error
  void agree(const call_signature& mine) {
    detail::agree(space_, comm_, agreement(mine, true, segments(), comm_.rank(), comm_.size(), memory_));
  }

  /// What is wrong with a gradient for this plan; empty if nothing. @param plan  what the user calls with it
  std::string problem_with(std::span<const T> elements, const char* plan) const {
    return problem_with_gradient(space_, elements, length(), purpose == plan_purpose::of_user ? plan : call_);
  }
  const std::string& schedule_problem() const { return problem_; }

  plan_purpose purpose = plan_purpose::of_user;

 private:
  bool some_stage_is_grouped() const {
    for (int rank = 0; rank < comm_.size(); ++rank)
      if (std::ranges::any_of(schedule_.stages(rank, comm_.size(), input(true)), &stage::grouped)) return true;
    return false;
  }

  void begin_signature(const Rule& rule, std::string_view location) {
    signature_ = signature_of<T>(segments(), rule, inner_rule_of(schedule_), schedule_, location, describe(options_));
    if (purpose == plan_purpose::kept) signature_.set(signature_.activity, "a call that keeps its plan");
    if (purpose == plan_purpose::one_call) signature_.set(signature_.activity, "a call that keeps no plan");
    signature_.recombines_in_double = recombines_in_double<Space, T>;
    signature_.on_device = device_space<Space>;
    to().describe(signature_, length(), comm_.size());
    if (compares()) {
      signature_.set(signature_.space, arithmetic_of(space_));
      if (memory_.empty()) memory_ = agreement_memory(comm_.size());
    }
    if (!shard_) return;
    // Ranks that have different shards do the same: who has which is found out apart.
    signature_.set(signature_.shards, "shards of gradients");
    signature_.length = signature_.segments_hash = 0;
  }

  /// For each rank only where that says something: several nodes, one of which has several ranks.
  void remember_nodes(std::span<const int> node_of_rank) {
    if (node_of_rank.size() != static_cast<std::size_t>(comm_.size()))
      throw bad_input(std::string(call_) + ": the communicator's nodes() has " +
                      counted(node_of_rank.size(), "number") + " for " + counted(comm_.size(), "rank"));
    if (std::ranges::all_of(node_of_rank, [&](int node) { return node == node_of_rank.front(); })) return;
    apart_ = node_groups(node_of_rank).size() == node_of_rank.size();
    if (!apart_) nodes_.assign(node_of_rank.begin(), node_of_rank.end());
  }

  /// Of the result, to each rank. By the stages that stages() gives.
  parts_of_result parts(bool in_place) const {
    const auto asked = input(in_place);
    const auto stages_of_rank = [&](int rank) {
      return problem_.empty() ? schedule_.stages(rank, comm_.size(), asked)
                              : schedules::all_to_all{}.stages(rank, comm_.size(), asked);
    };
    parts_of_result found{to().wanted(length(), comm_.size()), {}};
    if (comm_.size() == 1) return found;
    const auto at_end = ranks_at_end(stages_of_rank(comm_.rank()), comm_.size(), stages_of_rank);
    found.to_owners = exchange_of_parts(at_end, found.wanted, nodes_).of(comm_.rank(), at_end.size());
    return found;
  }

  template <class AnySchedule>
  std::vector<planned_stage> stages_of(const AnySchedule& order, bool in_place) const {
    auto asked = input(in_place);
    if (shard_) return planned(stages_of_shard(order, asked), segments().size());
    asked.whole_length = pieces_.empty() ? 0 : asked.length;
    if (pieces_.empty()) return planned(order.stages(comm_.rank(), comm_.size(), asked), segments().size());
    return stages_of_pieces(
        segments(), pieces_, comm_.size(),
        [&](std::size_t piece) {
          asked.length = piece;
          auto found = order.stages(comm_.rank(), comm_.size(), asked);
          if (found.empty() && comm_.size() == 1) return schedules::all_to_all{}.stages(0, 1, asked);
          return found;
        },
        asked.sums > 0, Schedule::name);
  }

  /// @throws bad_input  shards of different lengths would have ranks meet in different ways
  template <class AnySchedule>
  std::vector<stage> stages_of_shard(const AnySchedule& order, schedule_input asked) const {
    const auto replica = own_gradient();
    const auto of_longest = order.stages(replica, gradients(), asked);
    asked.length = length();
    auto found = order.stages(replica, gradients(), asked);
    const auto refuse = [&](const char* why) {
      throw bad_input(std::string(call_) + ": the schedule " + std::string(AnySchedule::name) + " " + why);
    };
    if (!meet_alike(found, of_longest))
      refuse("makes different stages for shards of different lengths (it should choose by schedule_input::of_whole())");
    if (!asked.along_tree && std::ranges::count(found, false, &stage::inner) > 1)
      refuse("has no stage that combines all gradients at once, which the rule needs for gradients in shards");
    for (auto& one : found) one = grid_.widen(std::move(one), shard_->index);
    return found;
  }

  Space space_;
  Comm comm_;
  Schedule schedule_;
  std::vector<std::size_t> offsets_;
  std::vector<int> nodes_;       // see schedule_input
  bool apart_ = false;           // see schedule_input
  basic_options<true> options_;  // of one type in builds with NDEBUG and without
  const char* call_;
  std::vector<index_range> pieces_;
  destination to_;                         // without its parts
  std::vector<std::size_t> part_offsets_;  // these
  std::optional<shard> shard_;             // this rank's
  shard_grid grid_;
  std::size_t longest_shard_ = 0;  // elements
  whole_gradients gradients_;
  std::string problem_;  // with the schedule
  call_signature signature_;
  agreement_memory memory_;
};

}  // namespace adasum::detail
