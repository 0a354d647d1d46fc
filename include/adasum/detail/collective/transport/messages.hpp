// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "../../../core/concepts.hpp"
#include "../../../schedule/sum_order.hpp"
#include "../call_signature.hpp"
#include "../report_stages.hpp"
#include "../small_allreduce.hpp"
#include "losses_of_run.hpp"
#include "messenger.hpp"
#include "told_losses.hpp"
#include "transport.hpp"

namespace adasum::detail {

/// How much memory a rank's messages take.
struct message_sizes {
  std::size_t members = 1;               ///< the most ranks that meet
  std::size_t received = 0;              ///< elements of other members' vectors
  std::size_t kept = 0;                  ///< of these, those that stay until all stages are weighed together
  std::size_t packed = 0, unpacked = 0;  ///< elements of one exchange, where they are rounded
  std::size_t joined = 0;                ///< elements that are sent with records behind them, and room for these
  std::size_t sums = 0;                  ///< doubles that are received when inner products are added

  /// What a stage exchanges by message. @param elements  whether its elements travel, or only what is known of them
  /// @param products  doubles that are added at once over sum_over
  /// @param room      elements behind each vector that is received, for records
  void include(const stage& stage, bool elements, std::size_t products, std::size_t room = 0) {
    const auto others = stage.members.size() - 1;
    members = std::max(members, others + 1);
    sums = std::max(sums, products * sum_order::most_received(stage.sum_over.size(), sum_radix(others + 1)));
    if (!elements) return;
    const auto own = stage.survives() ? stage.part().size() : 0;
    std::size_t to_survivors = 0;
    for (std::size_t i = 0; i < stage.survivors; ++i)
      if (i != stage.self) to_survivors += stage.parts[i].size();
    received = std::max(received, others * (own + room));
    packed = std::max({packed, to_survivors, others * own});
    unpacked = std::max({unpacked, others * own, stage.held.size()});
    // A rank that has withdrawn receives the result there, too.
    if (!stage.survives() || !stage.replicated()) received = std::max(received, stage.held.size() - own);
  }
  /// What follows the stages (schedule/parts_of_result.hpp).
  void include(const transfers& exchange) {
    const auto elements = [](const std::vector<transfer>& list) {
      std::size_t sum = 0;
      for (const auto& one : list) sum += one.elements.size();
      return sum;
    };
    members = std::max({members, exchange.sends.size() + 1, exchange.receives.size() + 1});
    packed = std::max(packed, elements(exchange.sends));
    unpacked = std::max(unpacked, elements(exchange.receives));
    received = std::max(received, elements(exchange.receives));
  }
  /// What is sent with records behind it, once if several get the same.
  /// @param room  elements for what is known of this rank's gradients
  void include_joined(const std::vector<transfer>& sends, std::size_t room) {
    std::size_t sum = 0;
    index_range last;
    for (const auto& one : sends) {
      if (one.joined && one.elements != last) sum += one.elements.size() + room;
      last = one.elements;
    }
    joined = std::max(joined, sum);
  }
  /// The stage's vectors stay. @return where they begin
  std::size_t keep(const stage& stage, std::size_t room) {
    return std::exchange(kept, kept + (stage.members.size() - 1) * (stage.survives() ? stage.part().size() + room : 0));
  }
};

/// The transport by messages, for any communicator. What is received before a stage lies in a buffer of its own, in the
/// order of the members, behind what stays there longer; the result is received in place. A rank that has withdrawn
/// touches its gradient no more: it receives everything in that buffer.
template <scalar T, execution_space<T> Space, communicator_for<Space> Comm>
class messages final : public transport<T> {
 public:
  /// @param space, comm, report  must outlive this object
  /// @param rounds_own           whether a rank rounds what it does not send, too: whoever combines some elements then gets
  ///                             the same
  /// @param pieces               of the gradient
  messages(const Space& space, const Comm& comm, wire_format format, const message_sizes& sizes, report_stages& report,
           bool rounds_own = false, std::size_t pieces = 1)
      : rank_(comm.rank()),
        rounds_own_(rounds_own),
        report_(report),
        losses_(pieces),
        received_(space.template allocate<T>(sizes.kept + sizes.received)),
        received_at_(received_.data()),
        messenger_(space, comm, format, sizes.packed, sizes.unpacked, sizes.joined, sizes.members,
                   longest(sizes, static_cast<std::size_t>(comm.size()), report)),
        sum_scratch_(sizes.sums) {}

  T* begin_run(T* gradient, bool posts) override {
    messenger_.begin_run(posts);
    losses_.begin_run();
    return gradient;
  }
  void end_run() override {}

  progress bring(const bound_stage<T>& stage, T* gradient, std::size_t turn) override {
    // Where all survivors combine everything, each keeps its own vector: as the others will see it.
    if (turn == 0 && stage.survives() && (stage.replicated() || rounds_own_) && !withdrawn()) round(stage, gradient);
    return exchange(stage, stage.to_combine, turn, [&] {
      T* to = received_at_ + stage.received_at;
      auto& lost = losses_of(stage);
      for (const auto& one : stage.to_combine.sends)
        send(stage, one, gradient, losses_.are_told(stage, stage.self, one.member) ? lost : told_losses{});
      if (losses_.forgets(stage, stage.self)) lost = {};
      for (const auto& one : stage.to_combine.receives)
        messenger_.receive(stage.members[one.member],
                           {std::exchange(to, to + one.elements.size() + stage.record_room), one.elements.size()},
                           joined_to(one));
    });
  }

  const T* vector(const bound_stage<T>& stage, std::size_t i, const T* gradient) const override {
    if (i == stage.self) return gradient + stage.part().begin;
    return received_at_ + stage.received_at + (i - (i > stage.self)) * (stage.part().size() + stage.record_room);
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
      for (const auto& one : stage.to_deliver.sends) send(stage, one, gradient, losses_of(stage));
      T* aside = received_at_;
      for (const auto& one : stage.to_deliver.receives) {
        const auto size = one.elements.size();
        T* const to = withdrawn() ? std::exchange(aside, aside + size) : gradient + one.elements.begin;
        messenger_.receive(stage.members[one.member], {to, size});
      }
    });
  }

  bool arrived(bool block) override { return messenger_.arrived(block); }

  void withdraw() override { messenger_.withdraw(); }
  progress leave() override { return progress::done; }
  bool withdrawn() const { return messenger_.withdrawn(); }

  // ── for what is no stage, or not all of one ──

  /// What is known of gradients, without their elements.
  progress exchange_records(const bound_stage<T>& stage, const transfers& list, std::size_t turn) {
    return exchange(stage, list, turn, [] {});
  }
  /// See report_stages.
  std::span<report::entry> known_of(index_range leaves) { return report_.known_of(leaves); }
  /// The next of the exchanges of a small sum or allgather. Done when all have been made.
  template <class Exchanges>
  progress next_of(Exchanges& exchanges) {
    return messenger_.start_next(exchanges) ? progress::waits : progress::done;
  }
  /// See messenger::set_scheduled.
  void set_scheduled(bool scheduled) { messenger_.set_scheduled(scheduled); }
  /// This rank's part of a vector, in the gradient, as the others will see it.
  void round(const bound_stage<T>& stage, T* gradient) {
    losses_of(stage) += messenger_.round({gradient + stage.part().begin, stage.part().size()});
  }
  /// Not that of a rank's gradient, but other vectors go down the same stages.
  void begin_vectors() { losses_.begin_vectors(); }
  /// What was lost, on all ranks where each gets the whole result; none where that was not counted, as in memory of a
  /// device.
  std::optional<wire_losses> losses() const {
    const auto all = losses_.all();
    if (device_space<Space> || all.uncounted > 0) return {};
    return all.counted;
  }
  told_losses& losses_of(const bound_stage<T>& stage) { return losses_.of(stage.piece); }
  std::size_t bytes_sent() const { return messenger_.bytes_sent(); }

 private:
  /// The most bytes of one message: elements, what is known of all gradients, sums, or what ranks compare.
  static std::size_t longest(const message_sizes& sizes, std::size_t ranks, report_stages& report) {
    return std::max(
        {std::max({sizes.packed, sizes.unpacked, sizes.received, sizes.joined}) * sizeof(T) + sizeof(told_losses),
         report.known_of({0, report.last().contributions()}).size_bytes(), sizes.sums * sizeof(double),
         ranks * sizeof(call_signature)});
  }

  /// One exchange. Between two ranks, elements come before what is known of them.
  template <class PutElements>
  progress exchange(const bound_stage<T>& stage, const transfers& list, std::size_t turn, PutElements&& put_elements) {
    if (turn == 0) {
      messenger_.begin();
      put_elements();
      for (const auto& one : list.sends) {
        if (!one.joined) messenger_.send_record(stage.members[one.member], report_.known_of(one.leaves));
        if (one.result_norms) messenger_.send_record(stage.members[one.member], report_.written().result_norms());
      }
      for (const auto& one : list.receives) {
        if (!one.joined) messenger_.receive_record(stage.members[one.member], report_.known_of(one.leaves));
        if (one.result_norms) messenger_.receive_record(stage.members[one.member], report_.written().result_norms());
      }
      if (messenger_.start()) return progress::waits;
    }
    losses_of(stage) += messenger_.unpack();
    return progress::done;
  }
  void send(const bound_stage<T>& stage, const transfer& one, const T* gradient, const told_losses& lost) {
    const T* const from = withdrawn() ? received_at_ : gradient + one.elements.begin;  // what is withheld is not read
    messenger_.send(stage.members[one.member], {from, one.elements.size()}, joined_to(one), lost);
  }
  /// The records in the message of the elements.
  std::span<report::entry> joined_to(const transfer& one) {
    return one.joined ? report_.known_of(one.leaves) : std::span<report::entry>();
  }

  int rank_;
  bool rounds_own_;
  report_stages& report_;
  losses_of_run losses_;
  decltype(std::declval<const Space&>().template allocate<T>(0)) received_;
  T* received_at_;
  messenger<T, Space, Comm> messenger_;
  std::vector<double> sum_scratch_;
  small_allreduce sum_;
};

}  // namespace adasum::detail
