// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "../../../core/concepts.hpp"
#include "../../../schedule/sum_order.hpp"
#include "../report_stages.hpp"
#include "../small_allreduce.hpp"
#include "messenger.hpp"
#include "transport.hpp"

namespace adasum::detail {

/// How much memory a rank's messages take.
struct message_sizes {
  std::size_t members = 1;               ///< the most ranks that meet
  std::size_t received = 0;              ///< elements of other members' vectors
  std::size_t packed = 0, unpacked = 0;  ///< elements of one exchange, where they are rounded
  std::size_t sums = 0;                  ///< doubles that are received when inner products are added

  /// What a stage exchanges by message. @param elements  whether its elements travel, or only what is known of them
  /// @param products  doubles that are added at once over sum_over
  void include(const stage& stage, bool elements, std::size_t products) {
    const auto others = stage.members.size() - 1;
    members = std::max(members, others + 1);
    sums = std::max(sums, products * sum_order::most_received(stage.sum_over.size(), sum_radix(others + 1)));
    if (!elements) return;
    const auto own = stage.survives() ? stage.part().size() : 0;
    std::size_t to_survivors = 0;
    for (std::size_t i = 0; i < stage.survivors; ++i)
      if (i != stage.self) to_survivors += stage.parts[i].size();
    received = std::max(received, others * own);
    packed = std::max({packed, to_survivors, others * own});
    unpacked = std::max({unpacked, others * own, stage.held.size()});
  }
};

/// The transport by messages, for any communicator. What is received before a stage lies in a buffer of its own, in the
/// order of the members; the result is received in place.
template <scalar T, execution_space<T> Space, communicator_for<Space> Comm>
class messages final : public transport<T> {
 public:
  /// @param space, comm, report  must outlive this object
  messages(const Space& space, const Comm& comm, wire_format format, const message_sizes& sizes, report_stages& report)
      : rank_(comm.rank()),
        report_(report),
        received_(space.template allocate<T>(sizes.received)),
        received_at_(received_.data()),
        messenger_(space, comm, format, sizes.packed, sizes.unpacked, sizes.members),
        sum_scratch_(sizes.sums) {}

  T* begin_run(T* gradient, bool posts) override {
    messenger_.begin_run(posts);
    return gradient;
  }
  void end_run() override {}

  progress bring(const bound_stage<T>& stage, T* gradient, std::size_t turn) override {
    // Where all survivors combine everything, each keeps its own vector: as the others will see it.
    if (turn == 0 && stage.survives() && stage.replicated()) round({gradient + stage.held.begin, stage.held.size()});
    return exchange(stage, stage.to_combine, turn, [&] {
      T* to = received_at_;
      for (const auto& one : stage.to_combine.sends) send(stage, one, gradient);
      for (const auto& one : stage.to_combine.receives)
        messenger_.receive(stage.members[one.member],
                           {std::exchange(to, to + one.elements.size()), one.elements.size()});
    });
  }

  const T* vector(const bound_stage<T>& stage, std::size_t i, const T* gradient) const override {
    if (i == stage.self) return gradient + stage.part().begin;
    return received_at_ + (i - (i > stage.self)) * stage.part().size();
  }

  progress sum(const bound_stage<T>& stage, std::span<double> values, std::size_t turn) override {
    if (turn == 0) {
      const auto self = static_cast<std::size_t>(std::ranges::find(stage.sum_over, rank_) - stage.sum_over.begin());
      sum_ = {stage.sum_over, self, sum_radix(stage.members.size()), values, sum_scratch_};
    }
    return next_of(sum_);
  }

  progress deliver(const bound_stage<T>& stage, T* gradient, std::size_t turn) override {
    return exchange(stage, stage.to_deliver, turn, [&] {
      for (const auto& one : stage.to_deliver.sends) send(stage, one, gradient);
      for (const auto& one : stage.to_deliver.receives)
        messenger_.receive(stage.members[one.member], {gradient + one.elements.begin, one.elements.size()});
    });
  }

  bool arrived(bool block) override { return messenger_.arrived(block); }

  progress withdraw() override {
    messenger_.withdraw();
    return progress::done;
  }
  bool withdrawn() const { return messenger_.withdrawn(); }

  // ── for what is no stage, or not all of one ──

  /// What is known of gradients, without their elements.
  progress exchange_records(const bound_stage<T>& stage, const transfers& list, std::size_t turn) {
    return exchange(stage, list, turn, [] {});
  }
  /// The next of the exchanges of a small sum or allgather. Done when all have been made.
  template <class Exchanges>
  progress next_of(Exchanges& exchanges) {
    return messenger_.start_next(exchanges) ? progress::waits : progress::done;
  }
  /// See messenger::set_scheduled.
  void set_scheduled(bool scheduled) { messenger_.set_scheduled(scheduled); }
  /// Elements as the others will see them.
  void round(std::span<T> elements) { messenger_.round(elements); }
  std::size_t bytes_sent() const { return messenger_.bytes_sent(); }

 private:
  /// One exchange. Between two ranks, elements come before what is known of them.
  template <class PutElements>
  progress exchange(const bound_stage<T>& stage, const transfers& list, std::size_t turn, PutElements&& put_elements) {
    if (turn == 0) {
      messenger_.begin();
      put_elements();
      for (const auto& one : list.sends) {
        messenger_.send_record(stage.members[one.member], report_.known_of(one.leaves));
        if (one.result_norms) messenger_.send_record(stage.members[one.member], report_.written().result_norms());
      }
      for (const auto& one : list.receives) {
        messenger_.receive_record(stage.members[one.member], report_.known_of(one.leaves));
        if (one.result_norms) messenger_.receive_record(stage.members[one.member], report_.written().result_norms());
      }
      if (messenger_.start()) return progress::waits;
    }
    messenger_.unpack();
    return progress::done;
  }
  void send(const bound_stage<T>& stage, const transfer& one, const T* gradient) {
    messenger_.send(stage.members[one.member], {gradient + one.elements.begin, one.elements.size()});
  }

  int rank_;
  report_stages& report_;
  decltype(std::declval<const Space&>().template allocate<T>(0)) received_;
  T* received_at_;
  messenger<T, Space, Comm> messenger_;
  std::vector<double> sum_scratch_;
  small_allreduce sum_;
};

}  // namespace adasum::detail
