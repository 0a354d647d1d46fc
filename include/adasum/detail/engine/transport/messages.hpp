// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "../../../core/report_writer.hpp"
#include "../../../core/segments.hpp"
#include "../../../core/stage.hpp"
#include "../../../schedules/sum_order.hpp"
#include "../../../schedules/transfers.hpp"
#include "../call_signature.hpp"
#include "../small_exchanges.hpp"
#include "messenger.hpp"
#include "transport.hpp"

namespace adasum::detail {

/// The transport by messages, for any communicator. What is received before a stage lies in a buffer of its own, in the
/// order of the members; the result is received in place. A rank that has withdrawn touches its gradient no more: it
/// receives everything in that buffer.
class messages final : public transport {
 public:
  /// @param report      must outlive this object
  /// @param rounds_own  whether a rank rounds what it does not send, too: whoever combines some elements then gets the same
  messages(const space_ref& space, const communicator_ref& comm, wire_format format, const message_sizes& sizes,
           report_writer& report, bool rounds_own = false)
      : space_(space),
        rank_(comm.rank()),
        rounds_own_(rounds_own),
        report_(report),
        received_(space.allocate(sizes.received)),
        messenger_(space, comm, format, sizes, longest(space, sizes, static_cast<std::size_t>(comm.size()), report)),
        sum_scratch_(sizes.sums) {}

  /// See messenger::begin_run.
  void begin_run(bool posts) { messenger_.begin_run(posts); }

  progress bring(const bound_stage& stage, std::byte* gradient, std::size_t turn) override {
    // Where all survivors combine everything, each keeps its own vector: as the others will see it.
    if (turn == 0 && stage.survives() && (stage.replicated() || rounds_own_) && !withdrawn()) round(stage, gradient);
    const auto put_elements = [&] {
      std::byte* to = received_.data();
      for (const auto& one : stage.to_combine.sends) send(stage, one, gradient);
      for (const auto& one : stage.to_combine.receives)
        messenger_.receive(stage.members[one.member],
                           std::exchange(to, space_.at(to, one.elements.size() + stage.record_room)),
                           one.elements.size(), joined_to(one));
    };
    return exchange(stage, stage.to_combine, turn, put_elements);
  }
  const std::byte* vector(const bound_stage& stage, std::size_t i, const std::byte* gradient) const override {
    if (i == stage.self) return space_.at(gradient, stage.part().begin);
    return space_.at(received_.data(), (i - (i > stage.self)) * (stage.part().size() + stage.record_room));
  }
  progress sum(const bound_stage& stage, std::span<double> values, std::size_t turn) override {
    if (turn == 0) {
      const auto self = static_cast<std::size_t>(std::ranges::find(stage.sum_over, rank_) - stage.sum_over.begin());
      sum_ = {stage.sum_over, self, sum_radix(stage.members.size()), values, sum_scratch_};
    }
    return next_of(sum_);
  }
  progress deliver(const bound_stage& stage, std::byte* gradient, std::size_t turn) override {
    const auto put_elements = [&] {
      for (const auto& one : stage.to_deliver.sends) send(stage, one, gradient);
      std::byte* aside = received_.data();
      for (const auto& one : stage.to_deliver.receives) {
        const auto size = one.elements.size();
        std::byte* const to =
            withdrawn() ? std::exchange(aside, space_.at(aside, size)) : space_.at(gradient, one.elements.begin);
        messenger_.receive(stage.members[one.member], to, size);
      }
    };
    return exchange(stage, stage.to_deliver, turn, put_elements);
  }

  bool arrived(bool block) override { return messenger_.arrived(block); }
  void withdraw() { messenger_.withdraw(); }
  bool withdrawn() const { return messenger_.withdrawn(); }

  // ── for what is no stage, or not all of one ──
  /// What is known of gradients, without their elements.
  progress exchange_records(const bound_stage& stage, const transfers& list, std::size_t turn) {
    return exchange(stage, list, turn, [] {});
  }
  /// Of some gradients.
  std::span<report::entry> known_of(index_range leaves) { return report_.rows(leaves.begin, leaves.end); }
  /// The next of the exchanges of a small sum or allgather. Done when all have been made.
  template <class Exchanges>
  progress next_of(Exchanges& exchanges) {
    return messenger_.start_next(exchanges) ? progress::waits : progress::done;
  }
  /// See messenger::set_scheduled.
  void set_scheduled(bool scheduled) { messenger_.set_scheduled(scheduled); }
  /// This rank's part of a vector, in the gradient, as the others will see it.
  void round(const bound_stage& stage, std::byte* gradient) {
    messenger_.round(space_.at(gradient, stage.part().begin), stage.part().size());
  }
  std::size_t bytes_sent() const { return messenger_.bytes_sent(); }

 private:
  /// The most bytes of one message: elements, what is known of all gradients, sums, or what ranks compare.
  static std::size_t longest(const space_ref& space, const message_sizes& sizes, std::size_t ranks,
                             const report_writer& report) {
    return std::max({std::max({sizes.packed, sizes.unpacked, sizes.received, sizes.joined}) * space.element_size(),
                     report.get().contributions() * report.get().segments() * sizeof(report::entry),
                     sizes.sums * sizeof(double), ranks * sizeof(call_signature)});
  }

  /// One exchange. Between two ranks, elements come before what is known of them.
  progress exchange(const bound_stage& stage, const transfers& list, std::size_t turn,
                    function_ref<void()> put_elements) {
    if (turn == 0) {
      messenger_.begin();
      put_elements();
      for (const auto& one : list.sends) {
        if (!one.joined) messenger_.send_record(stage.members[one.member], std::as_bytes(known_of(one.leaves)));
        if (one.result_norms) messenger_.send_record(stage.members[one.member], std::as_bytes(result_norms()));
      }
      for (const auto& one : list.receives) {
        if (!one.joined)
          messenger_.receive_record(stage.members[one.member], std::as_writable_bytes(known_of(one.leaves)));
        if (one.result_norms)
          messenger_.receive_record(stage.members[one.member], std::as_writable_bytes(result_norms()));
      }
      if (messenger_.start()) return progress::waits;
    }
    messenger_.unpack();
    return progress::done;
  }
  std::span<double> result_norms() { return report_.result_norms(); }
  void send(const bound_stage& stage, const transfer& one, const std::byte* gradient) {
    // What is withheld is not read.
    const auto* const from = withdrawn() ? received_.data() : space_.at(gradient, one.elements.begin);
    messenger_.send(stage.members[one.member], from, one.elements.size(), joined_to(one));
  }
  /// The records in the message of the elements.
  std::span<report::entry> joined_to(const transfer& one) {
    return one.joined ? known_of(one.leaves) : std::span<report::entry>();
  }

  space_ref space_;
  int rank_;
  bool rounds_own_;
  report_writer& report_;
  space_memory received_;
  messenger messenger_;
  std::vector<double> sum_scratch_;
  small_allreduce sum_;
};

}  // namespace adasum::detail
