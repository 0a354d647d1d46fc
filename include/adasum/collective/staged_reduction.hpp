// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "../core/combine_window.hpp"
#include "../core/concepts.hpp"
#include "../core/error.hpp"
#include "../core/nonfinite.hpp"
#include "../core/options.hpp"
#include "../core/report.hpp"
#include "agreement.hpp"
#include "gathering.hpp"
#include "group_sum.hpp"
#include "messenger.hpp"
#include "shared_access.hpp"
#include "steps.hpp"

/// Runs a schedule: turns its stages into messages, or into work on memory that the ranks share, and kernels. Holds all
/// buffers, so that running allocates nothing. A run is a list of steps (steps.hpp); where one has to wait for other ranks,
/// it blocks there, or returns to the caller and goes on later: between the two there is no other difference.
namespace adasum::detail {

/// For schedules without an inner rule.
struct no_inner_rule {
  static constexpr std::string_view name = "none";
  pair_weights operator()(const pair_gram&) const { return {1, 1}; }
};

/// What the stages are, and how to go about them.
template <rule Inner>
struct reduction_settings {
  std::vector<stage> stages;
  std::string_view schedule_name;
  Inner inner;                    ///< for the stages marked so
  std::vector<int> leaf_ranks{};  ///< which rank's gradient is which leaf; empty: each its own
  bool measure = true;            ///< whether rules that need no Gram matrix are measured all the same
  nonfinite_policy nonfinite = nonfinite_policy::propagate;
  wire_format wire = wire_format::same;
  double patience_seconds = 60;
};

template <scalar T, execution_space<T> Space, communicator_for<Space> Comm, rule Rule, rule Inner = no_inner_rule>
class staged_reduction {
  using memory = typename memory_shared_by<Comm>::type;
  using access = shared_access<memory>;

 public:
  /// @param segments  must outlive this object
  staged_reduction(Space space, Comm comm, Rule rule, segments_view segments, reduction_settings<Inner> settings)
      : space_(std::move(space)),
        comm_(std::move(comm)),
        rule_(std::move(rule)),
        segments_(segments),
        settings_(std::move(settings)),
        sizes_(settings_.stages, segments.size()),
        steps_(make_steps()),
        report_(ranks(), segments.size(), Rule::name, settings_.schedule_name),
        received_(space_.template allocate<T>(sizes_.received)),
        messages_(space_, comm_, settings_.wire, sizes_.packed, sizes_.unpacked, sizes_.members),
        gram_(sizes_.gram),
        sum_room_(sizes_.sum),
        weights_(segments.size() * sizes_.members),
        norms_(sizes_.members),
        total_(packed_size(sizes_.members)),
        vectors_(sizes_.members),
        leaves_(sizes_.members),
        scratch_(sizes_.members),
        takes_part_(ranks(), true),
        flags_(settings_.nonfinite == nonfinite_policy::propagate ? 0 : (ranks() + 1) * segments.size()) {
    report_.reserve_excluded();
  }

  staged_reduction(const staged_reduction&) =
      delete;  // segments_ belongs to someone else, who would have to be copied too
  staged_reduction& operator=(const staged_reduction&) = delete;
  /// In the middle of a run: withdraws from it, and returns when no other rank needs this one.
  ~staged_reduction() {
    if (!ended()) abandon();
  }

  /// Makes memory that the ranks share, for stages to work in. Collective.
  void share_memory()
    requires shared_memory_communicator<Comm>
  {
    shared_.emplace(comm_.share(access::bytes_for(sizes_.gram, segments_.all().end * sizeof(T))), comm_.rank(),
                    sizes_.gram, std::chrono::duration<double>(settings_.patience_seconds));
    steps_ = make_steps();
    at_ = steps_.size();
  }

  /// This rank's gradient in shared memory; null if there is none.
  T* shared_gradient() const { return shared_ ? reinterpret_cast<T*>(shared_->gradient()) : nullptr; }

  /// Whether every stage works on shared memory alone.
  bool is_direct() const {
    return std::ranges::all_of(settings_.stages, [&](const stage& level) { return in_place(level); });
  }

  /// Begins to reduce the gradient at `data` in place. Each start is followed by one wait().
  /// @param posts  whether the run is to go on in test(); otherwise nothing happens before wait()
  void start(T* data, bool posts) {
    data_ = data;
    posts_ = posts;
    messages_.begin_run(posts);
    go_to(step_kind::begin);
  }

  /// The same, but first all ranks tell each other what they intend.
  /// @param mine   what this one does; it is copied
  /// @param all    room for what all do, until wait() has returned
  void start(T* data, bool posts, const intention& mine, std::span<intention> all) {
    start(data, posts);
    go_to(step_kind::agree);
    intentions_ = all;
    gathering_ = gathering(std::as_bytes(std::span(&mine, 1)), comm_.rank(), comm_.size(), std::as_writable_bytes(all));
  }

  /// Takes no part in a reduction that the other ranks begin; they get a communication_error, and this rank, from wait(),
  /// the given exception.
  void start_refusing(std::exception_ptr problem, bool posts) {
    start(nullptr, posts);
    begin();
    fail(std::move(problem));
  }

  /// Goes on as far as it can without waiting. @return whether the run has ended, well or not: wait() will not block
  bool test() { return proceed(false); }

  /// Returns when the result is there. If anything failed on this rank, the others have been told before the exception
  /// leaves, so that none of them waits.
  const report& wait() {
    proceed(true);
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    return report_;
  }

  const report& last_report() const { return report_; }
  Rule& current_rule() { return rule_; }

 private:
  /// The sizes of buffers.
  struct buffer_sizes {
    buffer_sizes(const std::vector<stage>& stages, std::size_t segments) {
      for (const auto& level : stages) {
        const auto others = level.members.size() - 1;
        const auto own = level.survives() ? level.parts[level.self].size() : 0;
        members = std::max(members, others + 1);
        group = std::max(group, level.sum_over.size());
        received = std::max(received, others * own);
        packed = std::max({packed, sent_to_survivors(level), others * own});
        unpacked = std::max({unpacked, others * own, level.held.size()});
      }
      gram = segments * packed_size(members);
      sum = sum_order::most_received(group, gram);
    }

    /// Elements that a rank sends when its stage meets: the other survivors' parts.
    static std::size_t sent_to_survivors(const stage& level) {
      std::size_t sum = 0;
      for (std::size_t i = 0; i < level.survivors; ++i)
        if (i != level.self) sum += level.parts[i].size();
      return sum;
    }

    std::size_t members = 1, group = 1;    // the most ranks that meet, and that add inner products
    std::size_t received = 0;              // elements of other members' vectors
    std::size_t packed = 0, unpacked = 0;  // elements of one exchange
    std::size_t gram = 0, sum = 0;         // doubles: of Gram matrices, and received when they are added
  };

  std::size_t ranks() const { return static_cast<std::size_t>(comm_.size()); }
  std::size_t length() const { return segments_.all().end; }
  std::size_t rank_of_leaf(std::size_t leaf) const {
    return settings_.leaf_ranks.empty() ? leaf : static_cast<std::size_t>(settings_.leaf_ranks[leaf]);
  }

  // ── steps ──

  /// What a step waits for.
  enum class waiting { nothing, messages, barrier, to_be_left_alone };

  bool ended() const { return at_ == steps_.size(); }
  std::vector<step> make_steps() const {
    const bool take_part = settings_.nonfinite != nonfinite_policy::propagate;
    return steps_of(settings_.stages, take_part, settings_.wire != wire_format::same,
                    [&](const stage& level) { return in_place(level); });
  }
  void go_to(step_kind kind) {
    at_ = 0;
    while (steps_[at_].kind < kind) ++at_;
    turn_ = 0;
    waiting_ = waiting::nothing;
  }

  /// Takes steps until the run has ended or, unless it may block, has to wait. @return whether it has ended
  bool proceed(bool block) noexcept { return proceed(block, steps_.size()); }

  /// The same as far as the step `last`.
  bool proceed(bool block, std::size_t last) noexcept {
    for (;;) {
      try {
        while (at_ < last) {
          if (waiting_ != waiting::nothing && !arrived(block)) return false;
          const bool done = take(steps_[at_]);
          at_ += done;
          turn_ = done ? 0 : turn_ + 1;
        }
        return true;
      } catch (const nonfinite_error&) {  // on every rank
        end(std::current_exception());
      } catch (...) {
        steps_[at_].kind == step_kind::agree ? end(std::current_exception()) : fail(std::current_exception());
      }
    }
  }

  /// Whether what the last step waits for has come.
  bool arrived(bool block) {
    bool is_here = true;
    switch (waiting_) {
      case waiting::nothing: return true;
      case waiting::messages: is_here = messages_.arrived(block); break;
      case waiting::barrier:
        if (block)
          shared_->await_all(bounded_);
        else
          is_here = shared_->all_arrived();
        break;
      case waiting::to_be_left_alone:
        if (block)
          shared_->await_left_alone();
        else
          is_here = shared_->is_left_alone();
        break;
    }
    if (is_here) waiting_ = waiting::nothing;
    return is_here;
  }

  /// Takes a step, or the part of it that follows what it has waited for. @return whether it is done
  bool take(const step& next) {
    const auto& level = settings_.stages[next.level];
    switch (next.kind) {
      case step_kind::agree: return agree();
      case step_kind::begin: return begin();
      case step_kind::take_part: return decide_participation(data_);
      case step_kind::enter: return enter(data_);
      case step_kind::meet: return exchange([&] { meet(level, data_); });
      case step_kind::combine: return combine(level, data_, next.level + 1 == settings_.stages.size());
      case step_kind::settle: return settle(level, data_);
      case step_kind::await: return meet_at_barrier(false);  // the others are at later stages
      case step_kind::receive: return exchange([&] { receive_result(level, data_); });
      case step_kind::leave: return leave(level, data_);
      case step_kind::gather: return exchange([&] { gather(level, data_); });
      case step_kind::finish: return finish();
    }
    return true;
  }

  bool wait_for(waiting what) {
    waiting_ = what;
    return false;
  }

  /// A step of one exchange.
  template <class PutTogether>
  bool exchange(PutTogether&& put_together) {
    if (turn_ == 0) {
      messages_.begin();
      put_together();
      if (messages_.start()) return wait_for(waiting::messages);
    }
    messages_.unpack();
    return true;
  }

  /// A step of several small ones.
  template <class Exchanges>
  bool exchange_all(Exchanges& exchanges) {
    return messages_.start_next(exchanges) ? wait_for(waiting::messages) : true;
  }

  /// A step of one barrier. @param bounded  see shared_access::await_all
  bool meet_at_barrier(bool bounded) {
    if (turn_ > 0 || messages_.withdrawn()) return true;
    shared_->arrive();
    bounded_ = bounded;
    return wait_for(waiting::barrier);
  }

  // ── beginning and end ──

  bool agree() {
    if (!exchange_all(gathering_)) return false;
    require_agreement(intentions_);
    return true;
  }

  bool begin() {
    messages_.begin_run(posts_);
    spread_ = false;
    report_.begin();
    fallbacks_before_ = fallbacks_of(rule_);
    if (shared_) shared_->begin_run();
    if (T* const mine = shared_gradient(); data_ && mine && mine != data_) {
      callers_ = std::exchange(data_, mine);
      space_.copy(static_cast<const T*>(callers_), mine, length());
    } else {
      callers_ = nullptr;
    }
    return true;
  }

  bool finish() {
    if (messages_.withdrawn()) {
      away_.reset();
      return true;
    }
    if (callers_) space_.copy(static_cast<const T*>(data_), callers_, length());
    space_.fence();
    if (shared_) shared_->end_run();
    finish_report();
    return true;
  }

  /// The run is over, with an exception if there is one.
  void end(std::exception_ptr problem) {
    if (!error_) error_ = std::move(problem);
    at_ = steps_.size();
    away_.reset();
  }

  /// Something failed: walks through all the steps again, which skips the exchanges that were made and makes the others
  /// with empty messages. Nobody waits for this rank then; what it gets is thrown away.
  void fail(std::exception_ptr problem) noexcept {
    if (messages_.withdrawn()) return end(nullptr);
    error_ = std::move(problem);
    messages_.withdraw();
    go_to(step_kind::take_part);
    if (shared_) {
      shared_->fail();
      waiting_ = waiting::to_be_left_alone;
    }
    if constexpr (device_space<Space>) {
      // The device may be what failed. What it would receive is discarded, so nobody follows this address.
      if (!data_) data_ = reinterpret_cast<T*>(alignof(std::max_align_t));
    } else {
      try {
        away_.emplace(space_.template allocate<T>(length()));
        data_ = away_->data();
      } catch (...) {  // no memory: the others wait for messages that cannot be sent
        end(nullptr);
      }
    }
  }

  void abandon() noexcept {
    proceed(true, 2);  // agree and begin: until then, nothing can be withheld
    if (ended() || messages_.withdrawn()) return void(proceed(true));
    try {
      if (waiting_ == waiting::messages) messages_.arrived(true);  // into buffers that are still there
    } catch (...) {
    }
    fail(std::make_exception_ptr(communication_error("adasum: a reduction was abandoned")));
    proceed(true);
  }

  // ── who takes part ──

  bool decide_participation(T* data) {
    const auto k = segments_.size();
    const auto mine = std::span(flags_).last(k);
    const auto all = std::span(flags_).first(ranks() * k);
    if (turn_ == 0) {
      if (!messages_.withdrawn()) find_nonfinite<T>(space_, data, segments_, std::span(gram_).first(k), mine);
      gathering_ = gathering(std::as_bytes(mine), comm_.rank(), comm_.size(), std::as_writable_bytes(all));
    }
    if (!exchange_all(gathering_)) return false;
    if (messages_.withdrawn()) return true;
    for (std::size_t r = 0; r < ranks(); ++r) {
      takes_part_[r] = std::ranges::find(all.subspan(r * k, k), 1) == all.subspan(r * k, k).end();
      if (!takes_part_[r]) report_.exclude(static_cast<int>(r));
    }
    if (settings_.nonfinite == nonfinite_policy::raise && !report_.excluded().empty())
      throw nonfinite_error("adasum: Inf or NaN in the gradient of " + describe_nonfinite(all, k, "rank"));
    if (!takes_part_[static_cast<std::size_t>(comm_.rank())]) {
      const T* const in = data;
      std::ranges::fill(std::span(weights_).first(k), 0.0);
      space_.mix(whole(segments_), std::span(&in, 1), weights_.data(), data);
    }
    return true;
  }

  // ── messages ──

  static std::span<T> elements(T* data, index_range part) { return {data + part.begin, part.size()}; }

  /// What is known of the gradients that member i brings: nothing yet of a single one.
  std::span<report::entry> known_of(const stage& level, std::size_t i) {
    const auto first = level.leaves[i], last = level.leaves[i + 1];
    return last - first > 1 ? report_.rows(first, last) : std::span<report::entry>{};
  }

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
        messages_.send_note(peer, known_of(level, level.self));
      }
      if (level.survives()) {
        const auto count = level.parts[level.self].size();
        if (by_message) messages_.receive(peer, {std::exchange(room, room + count), count});
        messages_.receive_note(peer, known_of(level, i));
      }
    }
  }

  /// Others may still compute their gradients.
  bool enter(T* data) {
    if (turn_ == 0 && !messages_.withdrawn()) {
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
        messages_.send_note(peer, report_.rows(0, report_.contributions()));
        messages_.send_note(peer, report_.result_norms());
      }
    }
  }

  bool leave(const stage& level, T* data) {
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
      messages_.receive_note(peer, report_.rows(0, report_.contributions()));
      messages_.receive_note(peer, report_.result_norms());
    }
  }

  // ── shared memory ──

  /// Whether the members read and write each other's gradients instead of sending them.
  bool in_place(const stage& level) const {
    return shared_ && !level.replicated() && level.members.size() > 1 &&
           std::ranges::equal(level.members, shared_->ranks());
  }

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
    staged_reduction* self;
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

  /// visit(rule) with the rule that combines a stage.
  template <class Visitor>
  decltype(auto) with_rule_of(const stage& level, Visitor&& visit) {
    return level.inner ? visit(settings_.inner) : visit(rule_);
  }
  bool is_measured(const stage& level) const {
    return settings_.measure || (level.inner ? needs_gram<Inner> : needs_gram<Rule>);
  }
  static index_range part_of(const stage& level) { return level.parts[level.self]; }
  slice window_of(const stage& level) const { return {segments_, part_of(level), part_of(level).begin}; }
  std::span<double> gram_of(const stage& level) {
    return std::span(gram_).first(segments_.size() * packed_size(level.members.size()));
  }

  bool combine(const stage& level, T* data, bool last) {
    if (!measure(level, data)) return false;
    if (!messages_.withdrawn()) mix(level, data, last);
    return true;
  }

  bool settle(const stage& level, T* data) {
    messages_.round(elements(data, level.parts[level.self]));
    return true;
  }

  /// The Gram matrix of the members' vectors, of all ranks that hold parts of them. @return whether it is there
  bool measure(const stage& level, T* data) {
    const auto gram = gram_of(level);
    if (turn_ > 0) {
      if (!adds_in_place(level)) return exchange_all(sum_);
      shared_->collect(gram);
      return true;
    }
    const auto n = level.members.size();
    const auto part = part_of(level);
    const auto vectors = std::span(vectors_).first(n);
    const bool by_message = !in_place(level);
    const T* room = received_.data();
    for (std::size_t i = 0; i < n; ++i) {
      leaves_[i] = 0;
      for (auto leaf = level.leaves[i]; leaf < level.leaves[i + 1]; ++leaf)
        leaves_[i] += takes_part_[rank_of_leaf(leaf)];
      if (messages_.withdrawn()) continue;
      vectors[i] = i == level.self ? data + part.begin
                   : by_message    ? std::exchange(room, room + part.size())
                                   : gradient_of(i) + part.begin;
    }
    const bool measured = is_measured(level);
    if (measured && !messages_.withdrawn()) {
      space_.measure(window_of(level), std::span<const T* const>(vectors), gram.data());
      space_.fence();
    } else {
      std::ranges::fill(gram, 0.0);
    }
    if (!measured || level.sum_over.size() == 1) return true;
    if (adds_in_place(level)) {
      if (messages_.withdrawn()) return true;
      shared_->contribute(gram);
      bounded_ = true;
      return wait_for(waiting::barrier);
    }
    sum_ = sum_over(level, gram);
    return exchange_all(sum_);
  }

  void mix(const stage& level, T* data, bool last) {
    const auto n = level.members.size();
    const bool measured = is_measured(level);
    // How many more sums there are, if any, depends on the numbers. These are rare, and block.
    const auto sum_over_ranks = [&](std::span<double> values) {
      if (level.sum_over.size() == 1) return;
      if (adds_in_place(level))
        shared_->sum(values);
      else
        messages_.exchange_unscheduled(sum_over(level, values));
    };
    spread_ =
        last && in_place(level) && !device_space<Space>;  // a device has no cache to use: it copies once, at the end
    T* const out = data + part_of(level).begin;
    const round_memory arrays{gram_of(level), std::span(weights_).first(segments_.size() * n),
                              std::span(norms_).first(n), std::span(total_).first(packed_size(n)), scratch_};
    with_rule_of(level, [&](auto& rule) {
      weigh_and_mix<T>(
          space_, rule, window_of(level), std::span<const T* const>(vectors_).first(n), std::span(leaves_).first(n), 0,
          out, arrays, sum_over_ranks,
          [&](std::size_t k, const segment_outcome& outcome) { note(level, k, outcome, measured); },
          spreader{this, &level, out, spread_ ? spread_chunk : spreader::unlimited});
    });
    space_.fence();
  }

  /// Whether the ranks that hold parts of the stage's vectors add their inner products in shared memory.
  bool adds_in_place(const stage& level) const {
    return in_place(level) && level.survivors == level.members.size() && level.sum_over == level.members;
  }
  /// By message.
  group_sum sum_over(const stage& level, std::span<double> values) {
    const auto self = std::ranges::find(level.sum_over, comm_.rank()) - level.sum_over.begin();
    return {level.sum_over, static_cast<std::size_t>(self), values, sum_room_};
  }

  // ── report ──

  /// Weights multiply along the path from a gradient to the root.
  void note(const stage& level, std::size_t k, const segment_outcome& outcome, bool measured) {
    constexpr auto unknown = std::numeric_limits<double>::quiet_NaN();
    for (std::size_t i = 0; i < level.members.size(); ++i) {
      const auto first = level.leaves[i], last = level.leaves[i + 1];
      if (last - first == 1)
        report_.row(first)[k] = {measured ? outcome.norms[i] : unknown, outcome.weights[i]};
      else
        for (auto leaf = first; leaf < last; ++leaf) report_.row(leaf)[k].weight *= outcome.weights[i];
    }
    report_.result_norms()[k] = measured ? outcome.result_norm : unknown;
    if (outcome.direct) report_.count_direct_segment();
  }

  void finish_report() {
    const auto& stages = settings_.stages;
    report_.set_measured(settings_.measure ||
                         (needs_gram<Rule> && (needs_gram<Inner> || std::ranges::none_of(stages, &stage::inner))));
    if (!settings_.leaf_ranks.empty()) report_.reorder(settings_.leaf_ranks);
    report_.finish_excluded(flags_);
    report_.set_bytes_sent(messages_.bytes_sent());
    report_.set_fallbacks(fallbacks_of(rule_) - fallbacks_before_);
  }

  using buffer = decltype(std::declval<const Space&>().template allocate<T>(0));

  Space space_;
  Comm comm_;
  Rule rule_;
  segments_view segments_;
  reduction_settings<Inner> settings_;
  buffer_sizes sizes_;
  std::optional<access> shared_;
  std::vector<step> steps_;

  report report_;
  buffer received_;
  messenger<T, Space, Comm> messages_;
  std::vector<double> gram_, sum_room_, weights_, norms_, total_;
  std::vector<const T*> vectors_;
  std::vector<std::size_t> leaves_;
  weigh_scratch scratch_;
  std::vector<bool> takes_part_;      // by rank
  std::vector<unsigned char> flags_;  // which segments are not finite: of every rank, and behind them this one's

  // Where a run stands.
  T* data_ = nullptr;
  T* callers_ = nullptr;            // the caller's gradient, if data_ is a copy in shared memory
  bool posts_ = false;              // whether exchanges are posted
  std::size_t at_ = steps_.size();  // the step
  std::size_t turn_ = 0;            // how often it has waited
  waiting waiting_ = waiting::nothing;
  bool bounded_ = false;  // whether there is a limit to waiting at the barrier
  gathering gathering_;
  group_sum sum_;
  std::span<intention> intentions_;
  std::exception_ptr error_;
  std::optional<buffer> away_;  // what a rank that has withdrawn works on
  bool spread_ = false;         // the last stage has already written its result to every member's gradient
  std::size_t fallbacks_before_ = 0;
};

}  // namespace adasum::detail
