// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "../../core/concepts.hpp"
#include "../../core/segments.hpp"
#include "../../schedule/transfers.hpp"
#include "call_signature.hpp"
#include "engine_settings.hpp"
#include "report_stages.hpp"
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

 public:
  /// Collective with how.in_shared_memory. @throws shared_memory_error
  /// @param space, comm, report  must outlive this object
  /// @param most_products        most_products(n): the most doubles that a stage of n members adds at once
  template <class MostProducts>
  bound_stages(const Space& space, const Comm& comm, segments_view segments, std::vector<planned_stage> stages,
               const transport_settings& how, report_stages& report, const MostProducts& most_products) {
    std::size_t products = 0;
    for (const auto& stage : stages) products = std::max(products, most_products(stage.members.size()));
    // Whether gradients are copied to where the others read them, so that every rank computes the whole result in its
    // own memory: where there is one stage, and it says so.
    const bool published = stages.size() == 1 && stages.front().published;
    if constexpr (can_share)
      if (how.in_shared_memory) {
        how.before_sharing();
        shared_.emplace(space, comm, segments.all().end, published, products, signature(segments, published),
                        how.timeout);
      }
    message_sizes sizes;
    stages_.reserve(stages.size());
    for (auto& stage : stages) {
      const bool by_message = !is_shared(stage);
      sizes.include(stage, by_message, most_products(stage.members.size()));
      const auto received_at = by_message && stage.weighed_together ? sizes.keep(stage) : 0;
      stages_.push_back({std::move(stage), {}, {}, nullptr, nullptr, received_at});
    }
    messages_.emplace(space, comm, how.wire, sizes, report);
    for (auto& stage : stages_) bind(stage, sizes.kept, static_cast<std::size_t>(comm.size()), how.records);
    if constexpr (can_share)
      if (shared_) shared_->send_records_by(*messages_);
  }
  bound_stages(const bound_stages&) = delete;
  bound_stages& operator=(const bound_stages&) = delete;

  std::span<const bound_stage<T>> all() const { return stages_; }
  messages_type& by_message() { return *messages_; }

  /// This rank's gradient in shared memory; null if there is none.
  T* shared_gradient() const {
    if constexpr (can_share)
      if (shared_) return shared_->gradient();
    return nullptr;
  }
  /// Whether no stage sends elements.
  bool is_in_place() const { return std::ranges::none_of(stages_, sends_elements()); }

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
  static std::uint64_t signature(segments_view segments, bool published) {
    return hash(std::array{std::size_t{published}, static_cast<std::size_t>(format_of<T>)}, hash(segments.offsets()));
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

  void bind(bound_stage<T>& bound, std::size_t kept, std::size_t leaves, bool records) {
    bound.elements = bound.products = &*messages_;
    if (!bound.weighed_together) bound.received_at = kept;
    bound.to_combine = transfers_to_combine(bound);
    bound.to_deliver = transfers_to_deliver(bound, leaves);
    if (!records) {
      bound.to_combine = elements_of(std::move(bound.to_combine));
      bound.to_deliver = elements_of(std::move(bound.to_deliver));
    }
    if constexpr (can_share) {
      if (shared_ && shared_->carries(bound)) bound.elements = &*shared_;
      if (shared_ && shared_->adds(bound)) bound.products = &*shared_;
    }
  }

  std::optional<typename shared_transport<can_share, Comm>::type> shared_;
  std::optional<messages_type> messages_;
  std::vector<bound_stage<T>> stages_;
};

}  // namespace adasum::detail
