// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "../../core/report_writer.hpp"
#include "../../core/scalar.hpp"
#include "../../core/segments.hpp"
#include "../../core/stage.hpp"
#include "../../schedules/sum_order.hpp"
#include "../../schedules/transfers.hpp"
#include "../references/communicator_ref.hpp"
#include "../references/erased.hpp"
#include "../references/space_ref.hpp"
#include "call_signature.hpp"
#include "engine_settings.hpp"
#include "transport/messages.hpp"
#include "transport/shared_memory.hpp"
#include "transport/transport.hpp"

namespace adasum::detail {

/// A reduction is a list of steps, cut where a rank has to wait for others. What can be interrupted between steps, and taken
/// up again, needs no thread of its own.
enum class step_kind {
  agree,         ///< what every rank is about to do, to all ranks, and compare
  begin,         ///< what was known of the last run is forgotten
  exclude,       ///< which gradients are finite, to all ranks
  bring,         ///< every member's part gets to where this rank can read it
  measure,       ///< the Gram matrices of what is here
  sum,           ///< … added over the ranks that hold the rest
  combine,       ///< weigh → mix → recombine: this rank's part of the combination
  round_result,  ///< a rank that has got to the root rounds its part of the result as messages do
  deliver,       ///< the result, to all members of a stage
  hand_over,     ///< or to every rank its part (schedules/parts_of_result.hpp)
  finish,        ///< the report
};

/// What a rank was doing when it has waited in vain.
constexpr const char* describe(step_kind kind) {
  switch (kind) {
    case step_kind::agree: return "comparing what the ranks are about to do";
    case step_kind::exclude: return "telling whose gradient is finite";
    case step_kind::bring: return "bringing gradients together";
    case step_kind::sum: return "adding inner products";
    case step_kind::combine: return "combining gradients that inner products cannot decide";
    case step_kind::deliver: return "delivering a result";
    case step_kind::hand_over: return "handing over parts of the result";
    case step_kind::begin:
    case step_kind::measure:
    case step_kind::round_result:
    case step_kind::finish: break;
  }
  return "a reduction";
}

/// What tracers are told.
constexpr const char* name_of(step_kind kind) {
  switch (kind) {
    case step_kind::agree: return "agree";
    case step_kind::begin: return "begin";
    case step_kind::exclude: return "exclude";
    case step_kind::bring: return "bring";
    case step_kind::measure: return "measure";
    case step_kind::sum: return "sum";
    case step_kind::combine: return "combine";
    case step_kind::round_result: return "round";
    case step_kind::deliver: return "deliver";
    case step_kind::hand_over: return "hand over";
    case step_kind::finish: return "finish";
  }
  return "";
}

struct step {
  step_kind kind;
  std::size_t stage = 0;  ///< the stage that it belongs to
};

/// A rank's stages, each bound to what carries it, and these transports.
class bound_stages {
 public:
  /// Collective with settings.transport.in_shared_memory. @throws shared_memory_error
  /// @param settings       their stages and parts of the result go
  /// @param report         must outlive this object
  /// @param most_products  most_products(n): the most doubles that a stage of n members adds at once
  bound_stages(engine_settings& settings, report_writer& report, function_ref<std::size_t(std::size_t)> most_products)
      : has_parts_(!settings.parts.to_every_rank()) {
    const auto& comm = settings.comm;
    const auto& how = settings.transport;
    auto stages = std::move(settings.stages);
    auto parts = std::move(settings.parts);
    const auto ranks = static_cast<std::size_t>(comm.size());
    const bool is_one_stage = is_one_stage_of_all(stages, comm.size());
    // If not, somebody has stayed behind at some level, and does not know what the others do.
    const bool all_go_on = stages.back().sum_over.size() == ranks;
    has_all_stages_ = is_one_stage || all_go_on;
    // Whether gradients are copied to where the others read them, so that every rank computes the whole result in its
    // own memory: where there is one stage, and it says so.
    const bool published = stages.size() == 1 && stages.front().published;
    if (how.in_shared_memory) share_memory(settings, stages, published, most_products);
    // One stage of all ranks, or levels in memory that all share, write to each its part; whatever else there is,
    // messages follow.
    const bool in_one_stage = is_one_stage && stages.front().survivors == ranks && is_shared(stages.front());
    const bool by_levels = all_go_on && all_are_shared_levels(stages);
    if (in_one_stage || by_levels) parts.to_owners = {};
    message_sizes sizes;
    sizes.include(parts.to_owners, settings.segments.size(), settings.space.element_size());
    stages_.reserve(stages.size());
    for (auto& one : stages) {
      sizes.include_sum(one, most_products(one.members.size()));
      list_transfers(stages_.emplace_back(bound_stage{std::move(one)}), settings, report.get().contributions(), sizes);
    }
    messages_.emplace(settings.space, comm, how.wire, sizes, report, how.rounds_own);
    for (auto& one : stages_) bind(one, settings.segments.size());
    if (shared_) {
      shared_->send_records_by(*messages_);
      if (in_one_stage && !published) shared_->set_own_part(stages_.front().part());
    }
    begins_with_all_ = ranks > 1 && is_one_stage && is_shared(stages_.front());
    if (has_parts_) bind_parts(std::move(parts), in_one_stage, by_levels, comm.rank());
  }
  bound_stages(const bound_stages&) = delete;
  bound_stages& operator=(const bound_stages&) = delete;

  std::span<const bound_stage> all() const { return stages_; }
  /// Where every rank gets a part of the result only: all ranks, and what is exchanged when the stages are done.
  const bound_stage& to_owners() const { return to_owners_; }
  messages& by_message() { return *messages_; }

  /// Null if ranks share none.
  shared_memory* shared() { return shared_ ? &*shared_ : nullptr; }
  /// This rank's gradient in shared memory; null if there is none.
  std::byte* shared_gradient() const { return shared_ ? shared_->gradient() : nullptr; }
  /// Whether no stage of any rank sends elements. The same on all ranks that share memory with each other: false where some
  /// have stages that others, who have stayed behind, do not know.
  bool is_in_place() const {
    for (const auto& one : stages_)
      if (one.elements == &*messages_) return false;
    return has_all_stages_;
  }

  /// Whether all ranks meet in the first stage, in memory that they share, before any gradient changes.
  bool begins_with_all() const { return begins_with_all_; }

  /// The steps of a reduction: down the stages as far as this rank survives them, and back. What would have nothing to do
  /// is left out: reductions of short vectors are a matter of nanoseconds.
  /// @param excludes     whether the ranks tell each other who takes part
  /// @param rounds       whether the result is rounded
  /// @param is_measured  whether a stage's Gram matrix is
  std::vector<step> steps(bool excludes, bool rounds, function_ref<bool(const bound_stage&)> is_measured) const {
    std::vector<step> steps{{step_kind::agree}, {step_kind::begin}};
    steps.reserve(5 * stages_.size() + 6);
    if (excludes) steps.push_back({step_kind::exclude});
    std::size_t done = 0;
    for (; done < stages_.size(); ++done) {
      const auto& stage = stages_[done];
      if (stage.members.size() > 1) steps.push_back({step_kind::bring, done});
      if (!stage.survives()) break;
      steps.push_back({step_kind::measure, done});
      if (stage.sum_over.size() > 1 && is_measured(stage)) steps.push_back({step_kind::sum, done});
      steps.push_back({step_kind::combine, done});
    }
    const bool has_result = done == stages_.size();
    if (has_result && rounds) steps.push_back({step_kind::round_result, done - 1});
    if (!has_parts_) {
      if (!has_result) steps.push_back({step_kind::deliver, done});
      while (done-- > 0)
        if (!stages_[done].to_deliver.empty()) steps.push_back({step_kind::deliver, done});
    } else {
      // In memory that ranks share, each waits until nobody works on its gradient any more, before it gives that to messages.
      for (auto met = std::min(done + 1, stages_.size()); met-- > 0;)
        if (stages_[met].in_place) steps.push_back({step_kind::deliver, met});
      if (!to_owners_.to_deliver.empty()) steps.push_back({step_kind::hand_over});
    }
    steps.push_back({step_kind::finish});
    return steps;
  }

  // ── a run ──
  /// @return where it works on the gradient
  std::byte* begin_run(std::byte* gradient, bool posts) {
    messages_->begin_run(posts);
    return shared_ ? shared_->begin_run(gradient) : gradient;
  }
  void end_run() {
    if (shared_) shared_->end_run();
  }
  /// This rank has failed.
  void withdraw() {
    messages_->withdraw();
    if (shared_) shared_->withdraw();
  }

 private:
  /// What is sent and received in a stage, for which messages are to have room. In shared memory: nothing by message.
  void list_transfers(bound_stage& one, const engine_settings& settings, std::size_t contributions,
                      message_sizes& sizes) const {
    const auto& space = settings.space;
    const bool by_message = !is_shared(one);
    // What is rounded is packed by the space.
    const bool can_join = !space.is_device() && settings.transport.wire == wire_format::same;
    one.to_combine = transfers_to_combine(one, by_message ? most_joined(space.element_size(), can_join) : 0);
    one.to_deliver = transfers_to_deliver(one, contributions);
    one.record_room = room_for_records(one.to_combine.receives, settings.segments.size(), space.element_size());
    if (!by_message) return;
    sizes.include(one.to_combine, settings.segments.size(), space.element_size());
    sizes.include(one.to_deliver, settings.segments.size(), space.element_size());
  }

  void share_memory(const engine_settings& settings, const std::vector<stage>& stages, bool published,
                    function_ref<std::size_t(std::size_t)> most_products) {
    const auto& space = settings.space;
    const auto& comm = settings.comm;
    const auto segments = settings.segments;
    const auto length = segments.all().end;
    const auto needed = sizes_in_memory(stages, segments, most_products);
    const auto of_stages = signature(space.format(), segments, stages);
    // From here on nothing may fail until this rank has asked for memory: the others do.
    const auto bytes =
        settings.transport.before_sharing(shared_memory::bytes_for(space, comm, length, published, needed));
    shared_.emplace(space, comm, length, published, needed, of_stages, settings.transport.timeout, bytes);
  }
  static std::uint64_t signature(number_format format, segments_view segments, const std::vector<stage>& stages) {
    std::vector<std::size_t> what{std::size_t{stages.size() == 1 && stages.front().published},
                                  static_cast<std::size_t>(format)};
    // Of levels, the first: a rank that stays behind has no others.
    if (!stages.empty() && stages.front().grouped) what.push_back(stages.front().members.size());
    return hash(what, hash(segments.offsets()));
  }

  static shared_sizes sizes_in_memory(const std::vector<stage>& stages, segments_view segments,
                                      function_ref<std::size_t(std::size_t)> most_products) {
    shared_sizes found;
    for (const auto& one : stages) {
      if (shared_memory::has_sums(one)) {
        found.sums = std::max(found.sums, most_products(one.members.size()));
        found.rounds =
            std::max(found.rounds, sum_order(one.sum_over.size(), 0, sum_radix(one.members.size())).exchanges());
      }
      found.record_bytes += shared_memory::record_bytes_of(one, segments.size());
    }
    return found;
  }

  bool is_shared(const stage& one) const { return shared_ && shared_->carries(one); }
  bool all_are_shared_levels(const std::vector<stage>& stages) const {
    for (const auto& one : stages)
      if (!one.grouped || !is_shared(one)) return false;
    return true;
  }

  void bind(bound_stage& bound, std::size_t segments) {
    bound.elements = bound.products = &*messages_;
    if (!shared_) return;
    bound.group = shared_->add_group(bound, segments);
    if (shared_->carries(bound)) {
      bound.elements = &*shared_;
      bound.in_place = !bound.published;
    }
    if (shared_->adds(bound)) bound.products = &*shared_;
  }

  /// @param in_one_stage  whether the one stage there is writes to each rank its part
  /// @param by_levels     whether the last of several stages does
  void bind_parts(parts_of_result parts, bool in_one_stage, bool by_levels, int rank) {
    for (std::size_t i = 0; i < parts.wanted.size(); ++i) to_owners_.members.push_back(static_cast<int>(i));
    to_owners_.self = static_cast<std::size_t>(rank);
    to_owners_.elements = to_owners_.products = &*messages_;
    to_owners_.to_deliver = std::move(parts.to_owners);
    if (shared_) shared_->set_wanted(parts.wanted, rank, by_levels);
    for (auto& bound : stages_) {
      if (!bound.in_place) continue;
      bound.to_deliver = {};  // who stays behind is told by to_owners
      for (const int member : bound.members)
        bound.wanted.push_back(in_one_stage ? parts.wanted[static_cast<std::size_t>(member)] : index_range{});
    }
  }

  bool has_parts_;
  bool begins_with_all_ = false;
  bool has_all_stages_ = false;  // whether no rank has stages after this one's last
  std::optional<shared_memory> shared_;
  std::optional<messages> messages_;
  std::vector<bound_stage> stages_;
  bound_stage to_owners_{};
};

}  // namespace adasum::detail
