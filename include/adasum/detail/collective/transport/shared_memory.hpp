// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../../core/config.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>

#include "../../../core/concepts.hpp"
#include "messages.hpp"
#include "shared_access.hpp"
#include "transport.hpp"

namespace adasum::detail {

/// Whether the communicator's shared memory can hold gradients of the space, or any address will do.
template <class Comm, class Space>
constexpr bool shares_gradients = [] {
  if constexpr (shared_memory_communicator<Comm>)
    return !device_space<Space> || memory_shared_by<Comm>::type::same_address_space;
  else
    return false;
}();

/// The transport in memory that ranks share: a stage whose members are all the ranks that share it sends nothing. Each
/// rank combines its part of all gradients where they lie and writes it into all of them; or, where the stage says
/// `published`, reads copies of all gradients and combines everything in its own memory. Records still travel by message.
template <scalar T, execution_space<T> Space, communicator_for<Space> Comm>
class shared_memory final : public transport<T> {
  using access = shared_access<typename memory_shared_by<Comm>::type>;

 public:
  /// Collective. @throws shared_memory_error  there is no room; on all ranks
  /// @param space, by_message  must outlive this object
  /// @param published  whether the one stage there is says so
  /// @param sums       the most doubles that are added at once
  /// @param signature  tells plans apart that cannot work together
  shared_memory(const Space& space, const Comm& comm, std::size_t length, bool published, std::size_t sums,
                std::uint64_t signature, std::chrono::duration<double> timeout)
      : space_(space),
        length_(length),
        result_{0, length},
        published_(published),
        shared_(comm.share(access::bytes_for(slot_size(length, published, sums), length * sizeof(T))), comm.rank(),
                slot_size(length, published, sums), signature, timeout) {}

  void send_records_by(messages<T, Space, Comm>& by_message) { by_message_ = &by_message; }
  /// What this rank gets of the result, if not all of it.
  void set_result(index_range wanted) { result_ = wanted; }

  /// Whether the stage's members read and write each other's gradients.
  bool carries(const stage& stage) const {
    return stage.members.size() > 1 && (!stage.replicated() || published_) &&
           std::ranges::equal(stage.members, shared_.ranks());
  }
  /// Whether their inner products are added there, too.
  bool adds(const stage& stage) const {
    return carries(stage) && stage.survivors == stage.members.size() && stage.sum_over == stage.members;
  }

  /// This rank's gradient memory; null where every address can be reached and none is needed.
  T* gradient() const { return reinterpret_cast<T*>(shared_.gradient()); }

  T* begin_run(T* gradient_of_caller, bool) override {
    withdrawn_ = early_ = false;
    shared_.begin_run();
    callers_ = nullptr;
    mine_ = gradient();
    if (!gradient_of_caller || !mine_ || mine_ == gradient_of_caller || published_) return gradient_of_caller;
    shared_.require_left_alone();
    callers_ = gradient_of_caller;
    space_.copy(static_cast<const T*>(callers_), mine_, length_);
    return mine_;
  }
  void end_run() override {
    if (callers_) space_.copy(static_cast<const T*>(mine_) + result_.begin, callers_ + result_.begin, result_.size());
    space_.fence();
    shared_.end_run();
  }

  progress bring(const bound_stage<T>& stage, T* gradient, std::size_t turn) override {
    if (turn == 0 && !withdrawn_) {
      shared_.require_left_alone();
      if (published_)
        shared_.publish_copy(std::as_bytes(std::span(gradient + stage.held.begin, stage.held.size())));
      else
        shared_.publish(gradient);
      if constexpr (device_space<Space>) space_.fence();  // the others' kernels do not wait for this rank's
      return meet(false);                                 // others may still compute their gradients
    }
    return records(stage, stage.to_combine, turn);
  }

  const T* vector(const bound_stage<T>& stage, std::size_t i, const T* gradient) const override {
    if (i == stage.self) return gradient + stage.part().begin;
    if (published_) return reinterpret_cast<const T*>(shared_.published_copy(i));
    return gradient_of(i) + stage.part().begin;
  }

  progress sum(const bound_stage<T>&, std::span<double> values, std::size_t turn) override {
    if (withdrawn_) return progress::done;
    if (turn == 0) {
      shared_.contribute(values);
      return wait(pending::barrier, true);
    }
    shared_.collect(values);
    return progress::done;
  }

  progress deliver(const bound_stage<T>& stage, T* gradient, std::size_t turn) override {
    if (turn == 0 && !withdrawn_) {
      if (stage.survives() && !std::exchange(early_, false)) copy_to_others(stage, gradient, stage.part());
      return meet(stage.survives());  // one that waits does so until the others come back from later stages
    }
    return records(stage, stage.to_deliver, turn);
  }

  bool arrived(bool block) override {
    switch (pending_) {
      case pending::barrier: return block ? (shared_.await_all(bounded_), true) : shared_.all_arrived();
      case pending::isolation: return block ? (shared_.await_left_alone(), true) : shared_.is_left_alone();
      case pending::records: break;
    }
    return by_message_->arrived(block);
  }

  /// While they are in the cache; a device has none to use, and copies once.
  std::size_t elements_at_once(const bound_stage<T>& stage) const override {
    return stage.replicated() || device_space<Space> ? std::numeric_limits<std::size_t>::max() : std::size_t{1} << 14;
  }
  void deliver_early(const bound_stage<T>& stage, T* gradient, index_range written) override {
    early_ = true;
    copy_to_others(stage, gradient, written);
  }

  void withdraw() override {
    withdrawn_ = true;
    shared_.fail();
  }
  progress leave() override { return wait(pending::isolation, true); }

 private:
  enum class pending { barrier, isolation, records };

  static std::size_t slot_size(std::size_t length, bool published, std::size_t sums) {
    return std::max(sums, published ? (length * sizeof(T) + sizeof(double) - 1) / sizeof(double) : 0);
  }

  progress wait(pending what, bool bounded) {
    pending_ = what;
    bounded_ = bounded;
    return progress::waits;
  }
  /// @param bounded  see shared_access::await_all
  progress meet(bool bounded) {
    shared_.arrive();
    return wait(pending::barrier, bounded);
  }
  /// After the barrier, if there was one.
  progress records(const bound_stage<T>& stage, const transfers& list, std::size_t turn) {
    pending_ = pending::records;
    return by_message_->exchange_records(stage, list, withdrawn_ ? turn : turn - 1);
  }

  T* gradient_of(std::size_t i) const { return reinterpret_cast<T*>(shared_.published(i)); }
  void copy_to_others(const bound_stage<T>& stage, const T* gradient, index_range range) {
    for (std::size_t i = 0; i < stage.members.size(); ++i) {
      const auto [begin, end] = stage.wanted_by(i, range);
      if (i != stage.self && begin < end) space_.copy(gradient + begin, gradient_of(i) + begin, end - begin);
    }
    space_.fence();
  }

  const Space& space_;
  std::size_t length_;
  index_range result_;  // what this rank gets
  bool published_;
  access shared_;
  messages<T, Space, Comm>* by_message_ = nullptr;

  // Of the run that is under way.
  T* callers_ = nullptr;  // the caller's gradient, if the run works on a copy in shared memory
  T* mine_ = nullptr;
  bool withdrawn_ = false;
  bool early_ = false;    // the result has already been written to every member's gradient
  bool bounded_ = false;  // whether there is a limit to waiting at the barrier
  pending pending_ = pending::barrier;
};

}  // namespace adasum::detail
