// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "../core/combine_window.hpp"
#include "../core/concepts.hpp"
#include "../core/report.hpp"
#include "group_sum.hpp"

/// Runs a schedule: turns its stages into messages and kernels. Holds all buffers, so that running allocates nothing.
namespace adasum::detail {

template <scalar T, execution_space<T> Space, communicator_for<Space> Comm, rule Rule>
class staged_reduction {
 public:
  /// @param segments  must outlive this object
  /// @param measure   false only for a rule that needs no Gram matrix
  staged_reduction(Space space, Comm comm, Rule rule, segments_view segments, std::vector<stage> stages,
                   std::string_view schedule_name, bool measure)
      : space_(std::move(space)),
        comm_(std::move(comm)),
        rule_(std::move(rule)),
        segments_(segments),
        stages_(std::move(stages)),
        measure_(measure),
        report_(static_cast<std::size_t>(comm_.size()), segments.size(), Rule::name, schedule_name) {
    std::size_t most_members = 1, most_received = 0;
    for (const auto& level : stages_) {
      const auto n = level.members.size();
      most_members = std::max(most_members, n);
      if (level.survives()) most_received = std::max(most_received, (n - 1) * level.parts[level.self].size());
    }
    received_ = space_.template allocate<T>(most_received);
    const auto k = segments_.size();
    gram_.resize(k * packed_size(most_members));
    sum_room_.resize(gram_.size());
    weights_.resize(k * most_members);
    norms_.resize(most_members);
    vectors_.resize(most_members);
    leaves_.resize(most_members);
    scratch_ = weigh_scratch(most_members);
    out_.reserve(2 * most_members + 2);
    in_.reserve(2 * most_members + 2);
    report_.set_measured(measure_);
  }

  /// Reduces the gradient at `data` in place; returns when the result is there. If anything fails on this rank, the
  /// others are told before the exception leaves, so that none of them waits.
  const report& run(T* data) {
    begin();
    try {
      walk(data);
    } catch (...) {
      withdraw();
      throw;
    }
    return report_;
  }

  /// Takes no part in a reduction that the other ranks have begun; they get a communication_error.
  void withdraw_from_start() {
    begin();
    withdraw();
  }

  const report& last_report() const { return report_; }
  Rule& current_rule() { return rule_; }

 private:
  void begin() {
    withdrawn_ = false;
    steps_done_ = steps_to_skip_ = 0;
    report_.reset_counters();
  }

  /// Walks the rest of the stages with empty messages. Nobody waits for this rank then; what it gets is thrown away.
  void withdraw() noexcept {
    withdrawn_ = true;
    steps_to_skip_ = std::exchange(steps_done_, 0);
    try {
      auto away = space_.template allocate<T>(segments_.all().end);
      walk(away.data());
    } catch (...) {  // no memory: the others wait for messages that cannot be sent
    }
  }

  void exchange(std::span<outgoing> out, std::span<const incoming> in) {
    if (out.empty() && in.empty()) return;
    if (steps_done_++ < steps_to_skip_) return;
    if (!withdrawn_) {
      for (const auto& message : out) report_.count_bytes_sent(message.bytes.size());
      comm_.exchange(space_, out, in);
      return;
    }
    for (auto& message : out) message.withheld = true;
    try {
      comm_.exchange(space_, out, in);
    } catch (...) {  // the peers fail too, as they should
    }
  }

  /// One message each way, or only one way: for the small sums.
  auto exchanger() {
    return [this](std::span<const outgoing> out, std::span<const incoming> in) {
      out_.assign(out.begin(), out.end());
      exchange(out_, in);
    };
  }

  void walk(T* data) {
    std::size_t done = 0;
    for (; done < stages_.size(); ++done) {
      const auto& level = stages_[done];
      meet(level, data);
      if (!level.survives()) break;
      combine(level, data);
    }
    if (done < stages_.size()) receive_result(stages_[done], data);
    while (done-- > 0) gather(stages_[done], data);
  }

  // ── messages ──

  outgoing data_to(int peer, const T* data, index_range part) const {
    return {peer, std::as_bytes(std::span(data + part.begin, part.size())), residence::space};
  }
  incoming data_from(int peer, T* to, std::size_t count) const {
    return {peer, std::as_writable_bytes(std::span(to, count)), residence::space};
  }
  void add(const outgoing& message) {
    if (!message.bytes.empty()) out_.push_back(message);
  }
  void add(const incoming& room) {
    if (!room.bytes.empty()) in_.push_back(room);
  }

  /// What is known of the gradients that member i brings: nothing yet of a single one.
  std::span<report::entry> known_of(const stage& level, std::size_t i) {
    const auto first = level.leaves[i], last = level.leaves[i + 1];
    return last - first > 1 ? report_.rows(first, last) : std::span<report::entry>{};
  }

  /// Every survivor gets its part of each other member's vector, and what is known of the gradients in it.
  void meet(const stage& level, const T* data) {
    out_.clear();
    in_.clear();
    T* room = received_.data();
    for (std::size_t i = 0; i < level.members.size(); ++i) {
      if (i == level.self) continue;
      const int peer = level.members[i];
      if (i < level.survivors) {
        add(data_to(peer, data, level.parts[i]));
        add(outgoing{peer, std::as_bytes(known_of(level, level.self))});
      }
      if (level.survives()) {
        const auto count = level.parts[level.self].size();
        add(data_from(peer, room, count));
        add(incoming{peer, std::as_writable_bytes(known_of(level, i))});
        room += count;
      }
    }
    exchange(out_, in_);
  }

  /// Survivors that hold parts of the result give them to each other and to those that wait.
  void gather(const stage& level, T* data) {
    out_.clear();
    in_.clear();
    for (std::size_t i = 0; i < level.members.size(); ++i) {
      if (i == level.self) continue;
      const int peer = level.members[i];
      const bool waits = i >= level.survivors;
      if (level.replicated() ? waits && level.self == 0 : true) add(data_to(peer, data, level.parts[level.self]));
      if (!level.replicated() && !waits) add(data_from(peer, data + level.parts[i].begin, level.parts[i].size()));
      if (waits && level.self == 0) {
        add(outgoing{peer, std::as_bytes(report_.rows(0, report_.contributions()))});
        add(outgoing{peer, std::as_bytes(report_.result_norms())});
      }
    }
    exchange(out_, in_);
  }

  /// The other side of gather, for a rank that waits.
  void receive_result(const stage& level, T* data) {
    out_.clear();
    in_.clear();
    for (std::size_t i = 0; i < level.survivors; ++i) {
      const auto part = level.parts[i];
      if (i == 0 || !level.replicated()) add(data_from(level.members[i], data + part.begin, part.size()));
      if (i > 0) continue;
      add(incoming{level.members[i], std::as_writable_bytes(report_.rows(0, report_.contributions()))});
      add(incoming{level.members[i], std::as_writable_bytes(report_.result_norms())});
    }
    exchange(out_, in_);
  }

  // ── arithmetic ──

  void combine(const stage& level, T* data) {
    const auto n = level.members.size();
    const auto part = level.parts[level.self];
    const auto gram = std::span(gram_).first(segments_.size() * packed_size(n));
    const slice window{segments_, part, part.begin};
    const auto vectors = std::span(vectors_).first(n);
    const T* room = received_.data();
    for (std::size_t i = 0; i < n; ++i) {
      leaves_[i] = level.leaves[i + 1] - level.leaves[i];
      vectors[i] = i == level.self ? data + part.begin : std::exchange(room, room + part.size());
    }

    if (withdrawn_ || !measure_) {
      std::ranges::fill(gram, 0.0);
    } else {
      space_.template measure<T>(window, std::span<const T* const>(vectors), gram.data());
      space_.fence();
    }
    const auto sum_over_ranks = [&](std::span<double> values) {
      if (level.sum_over.size() == 1) return;
      const auto self = std::ranges::find(level.sum_over, comm_.rank()) - level.sum_over.begin();
      std::vector<double> more(values.size() > sum_room_.size() ? values.size() : 0);
      const auto room_for_sum = more.empty() ? std::span(sum_room_).first(values.size()) : std::span(more);
      sum_over_group(level.sum_over, static_cast<std::size_t>(self), values, room_for_sum, exchanger());
    };
    if (measure_) sum_over_ranks(gram);
    if (withdrawn_) return;

    const round_memory memory{gram, std::span(weights_).first(segments_.size() * n), std::span(norms_).first(n),
                              scratch_};
    weigh_and_mix<T>(space_, rule_, window, std::span<const T* const>(vectors), std::span(leaves_).first(n),
                     data + part.begin, memory, sum_over_ranks,
                     [&](std::size_t k, const segment_outcome& outcome) { note(level, k, outcome); });
    space_.fence();
  }

  /// Weights multiply along the path from a gradient to the root.
  void note(const stage& level, std::size_t k, const segment_outcome& outcome) {
    constexpr auto unknown = std::numeric_limits<double>::quiet_NaN();
    for (std::size_t i = 0; i < level.members.size(); ++i) {
      const auto first = level.leaves[i], last = level.leaves[i + 1];
      if (last - first == 1)
        report_.row(first)[k] = {measure_ ? outcome.norms[i] : unknown, outcome.weights[i]};
      else
        for (auto leaf = first; leaf < last; ++leaf) report_.row(leaf)[k].weight *= outcome.weights[i];
    }
    report_.result_norms()[k] = measure_ ? outcome.result_norm : unknown;
    if (outcome.direct) report_.count_direct_segment();
  }

  using buffer = decltype(std::declval<const Space&>().template allocate<T>(0));

  Space space_;
  Comm comm_;
  Rule rule_;
  segments_view segments_;
  std::vector<stage> stages_;
  bool measure_;

  report report_;
  buffer received_;
  std::vector<double> gram_, sum_room_, weights_, norms_;
  std::vector<const T*> vectors_;
  std::vector<std::size_t> leaves_;
  weigh_scratch scratch_;
  std::vector<outgoing> out_;
  std::vector<incoming> in_;

  bool withdrawn_ = false;
  std::size_t steps_done_ = 0;
  std::size_t steps_to_skip_ = 0;
};

}  // namespace adasum::detail
