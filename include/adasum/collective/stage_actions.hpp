// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "../core/combine_window.hpp"
#include "../core/concepts.hpp"
#include "../core/options.hpp"
#include "../core/report.hpp"
#include "agreement.hpp"
#include "gathering.hpp"
#include "group_sum.hpp"
#include "messenger.hpp"
#include "participation.hpp"
#include "reduction_settings.hpp"
#include "shared_access.hpp"
#include "stage_arithmetic.hpp"
#include "stage_report.hpp"
#include "steps.hpp"

namespace adasum::detail {

/// What is done in each step of a reduction (steps.hpp): stages become messages, or work on memory that the ranks
/// share, and arithmetic. Holds all buffers, so that running allocates nothing. Waits for nobody unless told to: a step
/// says what it waits for, and is taken up again when that has come.
template <scalar T, execution_space<T> Space, communicator_for<Space> Comm, rule Rule, rule Inner>
class stage_actions {
  using memory = typename memory_shared_by<Comm>::type;
  using access = shared_access<memory>;

 public:
  /// @param rule, segments  must outlive this object
  stage_actions(Space space, Comm comm, Rule& rule, segments_view segments, reduction_settings<Inner> settings)
      : space_(std::move(space)),
        comm_(std::move(comm)),
        segments_(segments),
        settings_(std::move(settings)),
        sizes_(settings_.stages, segments.size()),
        rule_(rule),
        arithmetic_(space_, rule_, settings_, segments, sizes_.members),
        report_(report(ranks(), segments.size(), Rule::name, settings_.schedule_name)),
        participation_(ranks(), segments.size(), settings_.nonfinite, settings_.leaf_ranks),
        received_(space_.template allocate<T>(sizes_.received)),
        messages_(space_, comm_, settings_.wire, sizes_.packed, sizes_.unpacked, sizes_.members),
        sum_room_(sizes_.sum) {}

  stage_actions(const stage_actions&) = delete;  // segments_ belongs to someone else, who would have to be copied too
  stage_actions& operator=(const stage_actions&) = delete;

  /// Makes memory that the ranks share, for stages to work in; the steps are others then. Collective.
  void share_memory()
    requires shared_memory_communicator<Comm>
  {
    const auto bytes = segments_.all().end * sizeof(T);
    const auto placed = std::max(sizes_.gram, is_placed() ? (bytes + sizeof(double) - 1) / sizeof(double) : 0);
    const auto signature =
        hash(std::array{std::size_t{is_placed()}, static_cast<std::size_t>(format_of<T>)}, hash(segments_.offsets()));
    shared_.emplace(comm_.share(access::bytes_for(placed, bytes)), comm_.rank(), placed, signature,
                    std::chrono::duration<double>(settings_.patience_seconds));
    if (is_direct()) received_ = space_.template allocate<T>(0);  // nothing will be
  }

  /// This rank's gradient in shared memory; null if there is none.
  T* shared_gradient() const { return shared_ ? reinterpret_cast<T*>(shared_->gradient()) : nullptr; }

  /// Whether every stage works on shared memory alone.
  bool is_direct() const {
    return std::ranges::all_of(settings_.stages, [&](const stage& level) { return in_place(level); });
  }

  std::vector<step> steps() const {
    return steps_of(settings_.stages, participation_.is_decided(), settings_.wire != wire_format::same,
                    [&](const stage& level) { return in_place(level); });
  }

  const report& last_report() const { return report_.written(); }

  /// A run is to begin, on the gradient at `data`.
  /// @param posts  whether exchanges are posted, so that arrived() need not block
  void prepare(T* data, bool posts) {
    data_ = data;
    posts_ = posts;
    messages_.begin_run(posts);
  }
  /// For the step agree: see staged_reduction::start.
  void prepare_agreement(const intention& mine, std::span<intention> all) {
    intentions_ = all;
    gathering_ = gathering(std::as_bytes(std::span(&mine, 1)), comm_.rank(), comm_.size(), std::as_writable_bytes(all));
  }

  /// Takes a step, or the part of it that follows what it has waited for.
  /// @param turn  how often it has waited
  /// @return what it waits for now; nothing when it is done
  waiting take(const step& next, std::size_t turn) {
    turn_ = turn;
    const auto& level = settings_.stages[next.level];
    switch (next.kind) {
      case step_kind::agree: return agree();
      case step_kind::begin: return begin();
      case step_kind::take_part: return decide_participation(data_);
      case step_kind::enter: return enter(level, data_);
      case step_kind::meet: return exchange([&] { meet(level, data_); });
      case step_kind::combine: return combine(level, data_, next.level + 1 == settings_.stages.size());
      case step_kind::settle: return settle(level, data_);
      case step_kind::await: return meet_at_barrier(false);  // the others are at later stages
      case step_kind::receive: return exchange([&] { receive_result(level, data_); });
      case step_kind::leave: return leave(level, data_);
      case step_kind::gather: return exchange([&] { gather(level, data_); });
      case step_kind::finish: return finish();
    }
    return waiting::nothing;
  }

  /// Whether what a step waits for has come. @param block  wait until it has
  bool arrived(waiting what, bool block) {
    switch (what) {
      case waiting::nothing: return true;
      case waiting::messages: return messages_.arrived(block);
      case waiting::barrier: return block ? (shared_->await_all(bounded_), true) : shared_->all_arrived();
      case waiting::to_be_left_alone: return block ? (shared_->await_left_alone(), true) : shared_->is_left_alone();
    }
    return true;
  }

  // ── a rank that has failed ──

  /// From here on, steps only withhold: this rank's exchanges are made, with empty messages, and what it gets is thrown
  /// away.
  /// @return what to wait for first
  /// @throws std::bad_alloc  there is no room for what the others send
  waiting withdraw() {
    messages_.withdraw();
    if (shared_) shared_->fail();
    if constexpr (device_space<Space>) {
      // The device may be what failed. What it would receive is discarded, so nobody follows this address.
      if (!data_) data_ = reinterpret_cast<T*>(alignof(std::max_align_t));
    } else {
      away_.emplace(space_.template allocate<T>(length()));
      data_ = away_->data();
    }
    return shared_ ? waiting::to_be_left_alone : waiting::nothing;
  }
  bool withdrawn() const { return messages_.withdrawn(); }
  void end() { away_.reset(); }

 private:
  std::size_t ranks() const { return static_cast<std::size_t>(comm_.size()); }
  std::size_t length() const { return segments_.all().end; }

  /// A step of one exchange.
  template <class PutTogether>
  waiting exchange(PutTogether&& put_together) {
    if (turn_ == 0) {
      messages_.begin();
      put_together();
      if (messages_.start()) return waiting::messages;
    }
    messages_.unpack();
    return waiting::nothing;
  }

  /// A step of several small ones.
  template <class Exchanges>
  waiting exchange_all(Exchanges& exchanges) {
    return messages_.start_next(exchanges) ? waiting::messages : waiting::nothing;
  }

  /// A step of one barrier. @param bounded  see shared_access::await_all
  waiting meet_at_barrier(bool bounded) {
    if (turn_ > 0 || messages_.withdrawn()) return waiting::nothing;
    shared_->arrive();
    bounded_ = bounded;
    return waiting::barrier;
  }

  // ── beginning and end ──

  waiting agree() {
    if (const auto what = exchange_all(gathering_); what != waiting::nothing) return what;
    require_agreement(intentions_);
    return waiting::nothing;
  }

  waiting begin() {
    messages_.begin_run(posts_);
    spread_ = false;
    report_.written().begin();
    fallbacks_before_ = fallbacks_of(rule_);
    if (shared_) shared_->begin_run();
    T* const mine = shared_gradient();
    if (data_ && mine && mine != data_ && !is_placed()) {
      callers_ = std::exchange(data_, mine);
      space_.copy(static_cast<const T*>(callers_), mine, length());
    } else {
      callers_ = nullptr;
    }
    return waiting::nothing;
  }

  waiting finish() {
    if (messages_.withdrawn()) {
      away_.reset();
      return waiting::nothing;
    }
    if (callers_) space_.copy(static_cast<const T*>(data_), callers_, length());
    space_.fence();
    if (shared_) shared_->end_run();
    finish_report();
    return waiting::nothing;
  }

  // ── who takes part ──

  waiting decide_participation(T* data) {
    if (turn_ == 0) {
      if (!messages_.withdrawn()) arithmetic_.find_nonfinite_segments(data, participation_.mine());
      gathering_ = participation_.exchanges(comm_.rank(), comm_.size());
    }
    if (const auto what = exchange_all(gathering_); what != waiting::nothing) return what;
    if (messages_.withdrawn()) return waiting::nothing;
    participation_.decide(report_.written());
    if (!participation_.of_rank(comm_.rank())) arithmetic_.clear(data);
    return waiting::nothing;
  }

  // ── messages ──

  static std::span<T> elements(T* data, index_range part) { return {data + part.begin, part.size()}; }

  /// Every survivor gets its part of each other member's vector, and what is known of the gradients in it.
  void meet(const stage& level, T* data) {
    const bool by_message = !in_place(level);
    if (by_message && level.survives() && level.replicated() && level.members.size() > 1)
      messages_.round(elements(data, level.held));  // as the others will see it
    T* room = received_.data();
    for (std::size_t i = 0; i < level.members.size(); ++i) {
      if (i == level.self) continue;
      const int peer = level.members[i];
      if (i < level.survivors) {
        if (by_message) messages_.send(peer, elements(data, level.parts[i]));
        messages_.send_note(peer, report_.known_of(level, level.self));
      }
      if (level.survives()) {
        const auto count = level.parts[level.self].size();
        if (by_message) messages_.receive(peer, {std::exchange(room, room + count), count});
        messages_.receive_note(peer, report_.known_of(level, i));
      }
    }
  }

  /// Others may still compute their gradients.
  waiting enter(const stage& level, T* data) {
    if (turn_ == 0 && !messages_.withdrawn()) {
      if (is_placed())
        shared_->place(std::as_bytes(elements(data, level.held)));
      else
        shared_->publish(data);
      if constexpr (device_space<Space>) space_.fence();  // the others' kernels do not wait for this rank's
    }
    return meet_at_barrier(false);
  }

  /// Survivors that hold parts of the result give them to each other and to those that wait.
  void gather(const stage& level, T* data) {
    const bool by_message = !in_place(level);
    for (std::size_t i = 0; i < level.members.size(); ++i) {
      if (i == level.self) continue;
      const int peer = level.members[i];
      const bool waits = i >= level.survivors;
      if (by_message && (!level.replicated() || (waits && level.self == 0)))
        messages_.send(peer, elements(data, level.parts[level.self]));
      if (by_message && !level.replicated() && !waits) messages_.receive(peer, elements(data, level.parts[i]));
      if (waits && level.self == 0) {
        messages_.send_note(peer, report_.known_of_all());
        messages_.send_note(peer, report_.written().result_norms());
      }
    }
  }

  waiting leave(const stage& level, T* data) {
    if (turn_ == 0 && !messages_.withdrawn() && !std::exchange(spread_, false))
      spread(level, data, level.parts[level.self]);
    return meet_at_barrier(true);
  }

  /// The other side of gather, for a rank that waits.
  void receive_result(const stage& level, T* data) {
    const bool by_message = !in_place(level);
    for (std::size_t i = 0; i < level.survivors; ++i) {
      const int peer = level.members[i];
      if (by_message && (i == 0 || !level.replicated())) messages_.receive(peer, elements(data, level.parts[i]));
      if (i > 0) continue;
      messages_.receive_note(peer, report_.known_of_all());
      messages_.receive_note(peer, report_.written().result_norms());
    }
  }

  // ── shared memory ──

  /// Whether the members read and write each other's gradients instead of sending them.
  bool in_place(const stage& level) const {
    return shared_ && level.members.size() > 1 && (!level.replicated() || is_placed()) &&
           std::ranges::equal(level.members, shared_->ranks());
  }
  /// Whether gradients are placed where the others read them, so that every rank computes the whole result in its own
  /// memory: where there is one stage, and it says so.
  bool is_placed() const { return settings_.stages.size() == 1 && settings_.stages.front().placed; }

  /// Elements at a time that are written to all gradients while they are in the cache.
  static constexpr std::size_t spread_chunk = std::size_t{1} << 14;

  void spread(const stage& level, const T* data, index_range range) {
    for (std::size_t i = 0; i < level.members.size(); ++i)
      if (i != level.self) space_.copy(data + range.begin, gradient_of(i) + range.begin, range.size());
    space_.fence();
  }
  T* gradient_of(std::size_t place) const { return reinterpret_cast<T*>(shared_->published(place)); }

  /// Passes on what has been written of the last stage's result.
  struct spreader {
    static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();
    stage_actions* self;
    const stage* level;
    const T* part;
    std::size_t chunk;

    void operator()(index_range written) const {
      if (chunk == unlimited) return;
      const auto begin = level->parts[level->self].begin;
      self->spread(*level, part - begin, {begin + written.begin, begin + written.end});
    }
  };

  // ── arithmetic ──

  waiting combine(const stage& level, T* data, bool last) {
    if (const auto what = measure(level, data); what != waiting::nothing) return what;
    if (!messages_.withdrawn()) mix(level, data, last);
    return waiting::nothing;
  }

  waiting settle(const stage& level, T* data) {
    messages_.round(elements(data, level.parts[level.self]));
    return waiting::nothing;
  }

  /// The Gram matrix of the members' vectors, of all ranks that hold parts of them.
  waiting measure(const stage& level, T* data) {
    const auto gram = arithmetic_.gram_of(level);
    if (turn_ > 0) {
      if (!adds_in_place(level)) return exchange_all(sum_);
      shared_->collect(gram);
      return waiting::nothing;
    }
    const bool measured = arithmetic_.is_measured(level);
    if (!messages_.withdrawn()) bring_vectors(level, data);
    if (measured && !messages_.withdrawn()) {
      arithmetic_.measure(level);
    } else {
      std::ranges::fill(gram, 0.0);
    }
    if (!measured || level.sum_over.size() == 1) return waiting::nothing;
    if (adds_in_place(level)) {
      if (messages_.withdrawn()) return waiting::nothing;
      shared_->contribute(gram);
      bounded_ = true;
      return waiting::barrier;
    }
    sum_ = sum_over(level, gram);
    return exchange_all(sum_);
  }

  void bring_vectors(const stage& level, const T* data) {
    const auto part = level.parts[level.self];
    const bool by_message = !in_place(level);
    const T* room = received_.data();
    for (std::size_t i = 0; i < level.members.size(); ++i) {
      arithmetic_.bring(i,
                        i == level.self ? data + part.begin
                        : by_message    ? std::exchange(room, room + part.size())
                        : is_placed()   ? reinterpret_cast<const T*>(shared_->placed(i))
                                        : gradient_of(i) + part.begin,
                        participation_.gradients(level, i));
    }
  }

  void mix(const stage& level, T* data, bool last) {
    const bool measured = arithmetic_.is_measured(level);
    // How many more sums there are, if any, depends on the numbers. These are rare, and block.
    const auto sum_over_ranks = [&](std::span<double> values) {
      if (level.sum_over.size() == 1) return;
      if (adds_in_place(level))
        shared_->sum(values);
      else
        messages_.exchange_unscheduled(sum_over(level, values));
    };
    spread_ = last && in_place(level) && !level.replicated() &&
              !device_space<Space>;  // a device has no cache to use: it copies once, at the end
    T* const out = data + level.parts[level.self].begin;
    arithmetic_.mix(
        level, out, sum_over_ranks,
        [&](std::size_t k, const segment_outcome& outcome) { report_.note(level, k, outcome, measured); },
        spreader{this, &level, out, spread_ ? spread_chunk : spreader::unlimited});
  }

  /// Whether the ranks that hold parts of the stage's vectors add their inner products in shared memory.
  bool adds_in_place(const stage& level) const {
    return in_place(level) && level.survivors == level.members.size() && level.sum_over == level.members;
  }
  /// By message.
  group_sum sum_over(const stage& level, std::span<double> values) {
    const auto self = std::ranges::find(level.sum_over, comm_.rank()) - level.sum_over.begin();
    return {level.sum_over, static_cast<std::size_t>(self), sum_radix(level.members.size()), values, sum_room_};
  }

  // ── report ──

  void finish_report() {
    const auto& stages = settings_.stages;
    auto& found = report_.written();
    found.set_measured(settings_.measure ||
                       (needs_gram<Rule> && (needs_gram<Inner> || std::ranges::none_of(stages, &stage::inner))));
    if (!settings_.leaf_ranks.empty()) found.reorder(settings_.leaf_ranks);
    found.finish_excluded(participation_.all());
    found.set_bytes_sent(messages_.bytes_sent());
    found.set_fallbacks(fallbacks_of(rule_) - fallbacks_before_);
  }

  using buffer = decltype(std::declval<const Space&>().template allocate<T>(0));

  Space space_;
  Comm comm_;
  segments_view segments_;
  reduction_settings<Inner> settings_;
  buffer_sizes sizes_;
  Rule& rule_;
  stage_arithmetic<T, Space, Rule, Inner> arithmetic_;
  std::optional<access> shared_;

  stage_report report_;
  participation participation_;
  buffer received_;
  messenger<T, Space, Comm> messages_;
  std::vector<double> sum_room_;

  // Of the run that is under way.
  T* data_ = nullptr;
  T* callers_ = nullptr;  // the caller's gradient, if data_ is a copy in shared memory
  bool posts_ = false;    // whether exchanges are posted
  std::size_t turn_ = 0;  // how often the step has waited
  bool bounded_ = false;  // whether there is a limit to waiting at the barrier
  gathering gathering_;
  group_sum sum_;
  std::span<intention> intentions_;
  std::optional<buffer> away_;  // what a rank that has withdrawn works on
  bool spread_ = false;         // the last stage has already written its result to every member's gradient
  std::size_t fallbacks_before_ = 0;
};

}  // namespace adasum::detail
