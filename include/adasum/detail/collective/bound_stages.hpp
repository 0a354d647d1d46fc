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

#include "../../core/concepts.hpp"
#include "../../core/segments.hpp"
#include "../../schedule/sum_order.hpp"
#include "../../schedule/transfers.hpp"
#include "call_signature.hpp"
#include "engine_settings.hpp"
#include "report_stages.hpp"
#include "transport/joined.hpp"
#include "transport/messages.hpp"
#include "transport/shared_memory.hpp"

namespace adasum::detail {

/// A rank's stages, each bound to what carries it, and these transports.
template <scalar T, execution_space<T> Space, communicator_for<Space> Comm>
class bound_stages {
  using messages_type = messages<T, Space, Comm>;
  static constexpr bool can_share = shares_gradients<Comm, Space>;
  struct nothing {};
  template <bool Can, class C>
  struct shared_transport {
    using type = shared_memory<T, Space, C>;
  };
  template <class C>
  struct shared_transport<false, C> {
    using type = nothing;
  };
  using transport_in_memory = typename shared_transport<can_share, Comm>::type;

 public:
  /// Collective with how.in_shared_memory. @throws shared_memory_error
  /// @param space, comm, report  must outlive this object
  /// @param most_products        most_products(n): the most doubles that a stage of n members adds at once
  template <class MostProducts>
  bound_stages(const Space& space, const Comm& comm, segments_view segments, std::vector<planned_stage> stages,
               const transport_settings& how, parts_of_result parts, report_stages& report,
               const MostProducts& most_products)
      : has_parts_(!parts.to_every_rank()) {
    const auto ranks = static_cast<std::size_t>(comm.size());
    const bool is_one_stage = is_one_stage_of_all(stages, comm.size());
    // If not, somebody has stayed behind at some level, and does not know what the others do.
    const bool all_go_on = stages.back().sum_over.size() == ranks;
    has_all_stages_ = is_one_stage || all_go_on;
    // Whether gradients are copied to where the others read them, so that every rank computes the whole result in its
    // own memory: where there is one stage, and it says so.
    const bool published = stages.size() == 1 && stages.front().published;
    if constexpr (can_share)
      if (how.in_shared_memory) {
        const auto plan = signature(segments, stages);
        const auto length = segments.all().end;
        const auto needed = sizes_in_memory(stages, segments, most_products, how.wire != wire_format::same);
        const auto bytes = how.before_sharing(transport_in_memory::bytes_for(comm, length, published, needed));
        shared_.emplace(space, comm, length, published, needed, plan, how.timeout, bytes);
      }
    // One stage of all ranks, or levels in memory that all share, write to each its part; whatever else there is,
    // messages follow.
    const bool in_one_stage = is_one_stage && stages.front().survivors == ranks && is_shared(stages.front());
    const bool by_levels =
        all_go_on && std::ranges::all_of(stages, [&](const auto& stage) { return stage.grouped && is_shared(stage); });
    if (in_one_stage || by_levels) parts.to_owners = {};
    if (!how.records) parts.to_owners = elements_of(std::move(parts.to_owners));
    message_sizes sizes;
    sizes.include(parts.to_owners);
    stages_.reserve(stages.size());
    std::size_t pieces = 1;
    for (auto& stage : stages) {
      if (!stages_.empty() && stages_.back().pieces_needed != stage.pieces_needed) ++pieces;
      const bool by_message = !is_shared(stage);
      auto to_combine = transfers_to_combine(stage, by_message ? most_joined(how.wire) : 0);
      if (!how.records) to_combine = elements_of(std::move(to_combine));
      const auto room = room_for_records<T>(to_combine.receives, segments.size());
      sizes.include(stage, by_message, most_products(stage.members.size()), room);
      sizes.include_joined(to_combine.sends, room_for_records<T>(to_combine.sends, segments.size()));
      const auto received_at = by_message && stage.weighed_together ? sizes.keep(stage, room) : 0;
      stages_.push_back({std::move(stage), std::move(to_combine), {}, nullptr, nullptr, received_at, room});
      stages_.back().piece = pieces - 1;
    }
    messages_.emplace(space, comm, how.wire, sizes, report, how.rounds_own, pieces);
    for (auto& stage : stages_)
      bind(stage, sizes.kept, report.last().contributions(), how.records, how.wire != wire_format::same,
           segments.size());
    if constexpr (can_share)
      if (shared_) {
        shared_->send_records_by(*messages_);
        if (in_one_stage && !published) shared_->set_own_part(stages_.front().part());
      }
    if (has_parts_) bind_parts(std::move(parts), in_one_stage, by_levels, comm.rank());
  }
  bound_stages(const bound_stages&) = delete;
  bound_stages& operator=(const bound_stages&) = delete;

  std::span<const bound_stage<T>> all() const { return stages_; }
  /// Where every rank gets a part of the result only: all ranks, and what is exchanged when the stages are done.
  bool has_parts() const { return has_parts_; }
  const bound_stage<T>& to_owners() const { return to_owners_; }
  /// Whether this rank takes part in that exchange, where every rank gets a part only.
  std::optional<bool> exchanges_parts() const {
    if (!has_parts_) return {};
    return !to_owners_.to_deliver.empty();
  }
  messages_type& by_message() { return *messages_; }

  /// This rank's gradient in shared memory; null if there is none.
  T* shared_gradient() const {
    if constexpr (can_share)
      if (shared_) return shared_->gradient();
    return nullptr;
  }
  /// Whether no stage of any rank sends elements. The same on all ranks that share memory with each other: false where some
  /// have stages that others, who have stayed behind, do not know.
  bool is_in_place() const { return has_all_stages_ && std::ranges::none_of(stages_, sends_elements()); }

  // ── a run ──

  /// @return where it works on the gradient
  T* begin_run(T* gradient, bool posts) {
    messages_->begin_run(gradient, posts);
    if constexpr (can_share)
      if (shared_) return shared_->begin_run(gradient, posts);
    return gradient;
  }
  void end_run() {
    if constexpr (can_share)
      if (shared_) shared_->end_run();
  }
  /// This rank has failed.
  void withdraw() {
    messages_->withdraw();
    if constexpr (can_share)
      if (shared_) shared_->withdraw();
  }
  /// The transport by which this rank leaves a run from which it has withdrawn.
  transport<T>& last_to_leave() {
    if constexpr (can_share)
      if (shared_) return *shared_;
    return *messages_;
  }

 private:
  /// See there. What is rounded is packed by the space.
  static constexpr std::size_t most_joined(wire_format wire) {
    return detail::most_joined(sizeof(T), !device_space<Space> && wire == wire_format::same);
  }
  static std::uint64_t signature(segments_view segments, const std::vector<planned_stage>& stages) {
    std::vector<std::size_t> what{std::size_t{stages.size() == 1 && stages.front().published},
                                  static_cast<std::size_t>(format_of<T>)};
    // Of levels, the first: a rank that stays behind has no others.
    if (!stages.empty() && stages.front().grouped) what.push_back(stages.front().members.size());
    return hash(what, hash(segments.offsets()));
  }
  template <class MostProducts>
  static shared_sizes sizes_in_memory(const std::vector<planned_stage>& stages, segments_view segments,
                                      const MostProducts& most_products, bool rounds) {
    shared_sizes found;
    for (const auto& stage : stages) {
      if (transport_in_memory::has_sums(stage)) {
        found.sums = std::max(found.sums, most_products(stage.members.size()));
        found.rounds =
            std::max(found.rounds, sum_order(stage.sum_over.size(), 0, sum_radix(stage.members.size())).exchanges());
      }
      found.record_bytes += transport_in_memory::record_bytes_of(stage, segments.size());
      if (rounds) found.record_bytes += transport_in_memory::losses_bytes_of_stage;
    }
    return found;
  }
  bool is_shared(const stage& stage) const {
    if constexpr (can_share)
      return shared_ && shared_->carries(stage);
    else
      return static_cast<void>(stage), false;
  }
  auto sends_elements() const {
    return [this](const bound_stage<T>& stage) { return stage.elements == &*messages_; };
  }

  void bind(bound_stage<T>& bound, std::size_t kept, std::size_t leaves, bool records, bool rounds,
            std::size_t segments) {
    bound.elements = bound.products = &*messages_;
    if (!bound.weighed_together) bound.received_at = kept;
    bound.to_deliver = transfers_to_deliver(bound, leaves);
    if (!records) bound.to_deliver = elements_of(std::move(bound.to_deliver));
    if constexpr (can_share) {
      if (shared_ && rounds) bound.losses_at = shared_->add_losses(bound);
      if (shared_) bound.group = shared_->add_group(bound, segments);
      if (shared_ && shared_->carries(bound)) {
        bound.elements = &*shared_;
        bound.in_place = !bound.published;
      }
      if (shared_ && shared_->adds(bound)) bound.products = &*shared_;
    }
  }

  /// @param in_one_stage  whether the one stage there is writes to each rank its part
  /// @param by_levels     whether the last of several stages does
  void bind_parts(parts_of_result parts, bool in_one_stage, bool by_levels, int rank) {
    const auto self = static_cast<std::size_t>(rank);
    for (std::size_t i = 0; i < parts.wanted.size(); ++i) to_owners_.members.push_back(static_cast<int>(i));
    to_owners_.self = self;
    to_owners_.elements = to_owners_.products = &*messages_;
    to_owners_.to_deliver = std::move(parts.to_owners);
    if constexpr (can_share)
      if (shared_) shared_->set_wanted(parts.wanted, rank, by_levels);
    for (auto& bound : stages_) {
      if (!bound.in_place) continue;
      bound.to_deliver = {};  // who stays behind is told by to_owners
      for (const int member : bound.members)
        bound.wanted.push_back(in_one_stage ? parts.wanted[static_cast<std::size_t>(member)] : index_range{});
    }
  }

  bool has_parts_;
  bool has_all_stages_ = false;  // whether no rank has stages after this one's last
  std::optional<transport_in_memory> shared_;
  std::optional<messages_type> messages_;
  std::vector<bound_stage<T>> stages_;
  bound_stage<T> to_owners_{};
};

}  // namespace adasum::detail
