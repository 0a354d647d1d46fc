// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
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
#include "group_sum.hpp"
#include "messenger.hpp"
#include "shared_access.hpp"

/// Runs a schedule: turns its stages into messages, or into work on memory that the ranks share, and kernels. Holds all
/// buffers, so that running allocates nothing.
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
        report_(ranks(), segments.size(), Rule::name, settings_.schedule_name),
        received_(space_.template allocate<T>(sizes_.received)),
        messages_(space_, comm_, settings_.wire, sizes_.packed, sizes_.unpacked, sizes_.members),
        gram_(sizes_.gram),
        sum_room_(sizes_.gram),
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

  staged_reduction(const staged_reduction&) = delete;  // segments_ belongs to someone else, who would have to be copied too
  staged_reduction& operator=(const staged_reduction&) = delete;

  /// Makes memory that the ranks share, for stages to work in. Collective.
  void share_memory()
    requires shared_memory_communicator<Comm>
  {
    shared_.emplace(comm_.share(access::bytes_for(sizes_.gram, segments_.all().end * sizeof(T))), comm_.rank(), sizes_.gram,
                    std::chrono::duration<double>(settings_.patience_seconds));
  }

  /// This rank's gradient in shared memory; null if there is none.
  T* shared_gradient() const { return shared_ ? reinterpret_cast<T*>(shared_->gradient()) : nullptr; }

  /// Whether every stage works on shared memory alone.
  bool is_direct() const {
    return std::ranges::all_of(settings_.stages, [&](const stage& level) { return in_place(level); });
  }

  /// Reduces the gradient at `data` in place; returns when the result is there. If anything fails on this rank, the
  /// others are told before the exception leaves, so that none of them waits.
  const report& run(T* data) {
    begin();
    try {
      T* const mine = shared_gradient();
      if (mine && mine != data) space_.copy(static_cast<const T*>(data), mine, length());
      walk(mine ? mine : data);
      if (mine && mine != data) space_.copy(static_cast<const T*>(mine), data, length());
      space_.fence();
    } catch (const nonfinite_error&) {
      throw;  // on every rank
    } catch (...) {
      withdraw();
      throw;
    }
    if (shared_) shared_->end_run();
    finish_report();
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
  /// The sizes of buffers.
  struct buffer_sizes {
    buffer_sizes(const std::vector<stage>& stages, std::size_t segments) {
      for (const auto& level : stages) {
        const auto others = level.members.size() - 1;
        const auto own = level.survives() ? level.parts[level.self].size() : 0;
        members = std::max(members, others + 1);
        received = std::max(received, others * own);
        packed = std::max({packed, others * level.held.size(), others * own});
        unpacked = std::max({unpacked, others * own, level.held.size()});
      }
      gram = segments * packed_size(members);
    }

    std::size_t members = 1;
    std::size_t received = 0;            // elements of other members' vectors
    std::size_t packed = 0, unpacked = 0;  // elements of one exchange
    std::size_t gram = 0;
  };

  std::size_t ranks() const { return static_cast<std::size_t>(comm_.size()); }
  std::size_t length() const { return segments_.all().end; }
  std::size_t rank_of_leaf(std::size_t leaf) const {
    return settings_.leaf_ranks.empty() ? leaf : static_cast<std::size_t>(settings_.leaf_ranks[leaf]);
  }

  void begin() {
    messages_.begin_run();
    spread_ = false;
    report_.begin();
    fallbacks_before_ = fallbacks_of(rule_);
    if (shared_) shared_->begin_run();
  }

  /// Walks the rest of the stages with empty messages. Nobody waits for this rank then; what it gets is thrown away.
  void withdraw() noexcept {
    messages_.withdraw();
    if (shared_) shared_->fail();
    try {
      auto away = space_.template allocate<T>(length());
      walk(away.data());
    } catch (...) {  // no memory: the others wait for messages that cannot be sent
    }
  }

  void walk(T* data) {
    if (settings_.nonfinite != nonfinite_policy::propagate) decide_participation(data);
    const auto& stages = settings_.stages;
    std::size_t done = 0;
    for (; done < stages.size(); ++done) {
      meet(stages[done], data);
      if (!stages[done].survives()) break;
      combine(stages[done], data, done + 1 == stages.size());
    }
    const bool sends = std::ranges::any_of(stages, [&](const stage& level) { return level.members.size() > 1 && !in_place(level); });
    if (done < stages.size())
      receive_result(stages[done], data);
    else if (sends)
      messages_.round(elements(data, stages.back().parts[stages.back().self]));
    while (done-- > 0) gather(stages[done], data);
  }

  // ── who takes part ──

  void decide_participation(T* data) {
    const auto k = segments_.size();
    const auto mine = std::span(flags_).last(k);
    const auto all = std::span(flags_).first(ranks() * k);
    if (!messages_.withdrawn()) find_nonfinite<T>(space_, data, segments_, std::span(gram_).first(k), mine);
    gather_from_all(std::span<const unsigned char>(mine), comm_.rank(), comm_.size(), all, messages_.small_exchange());
    if (messages_.withdrawn()) return;
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
    messages_.begin();
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
    if (!by_message && !messages_.withdrawn()) {
      shared_->publish(data);
      if constexpr (device_space<Space>) space_.fence();  // the others' kernels do not wait for this rank's
      shared_->barrier(false);  // others may still compute their gradients
    }
    messages_.exchange();
  }

  /// Survivors that hold parts of the result give them to each other and to those that wait.
  void gather(const stage& level, T* data) {
    const bool by_message = !in_place(level);
    messages_.begin();
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
    if (!by_message && !messages_.withdrawn()) {
      if (!std::exchange(spread_, false)) spread(level, data, level.parts[level.self]);
      shared_->barrier(true);
    }
    messages_.exchange();
  }

  /// The other side of gather, for a rank that waits.
  void receive_result(const stage& level, T* data) {
    const bool by_message = !in_place(level);
    messages_.begin();
    for (std::size_t i = 0; i < level.survivors; ++i) {
      const int peer = level.members[i];
      if (by_message && (i == 0 || !level.replicated())) messages_.receive(peer, elements(data, level.parts[i]));
      if (i > 0) continue;
      messages_.receive_note(peer, report_.rows(0, report_.contributions()));
      messages_.receive_note(peer, report_.result_norms());
    }
    if (!by_message && !messages_.withdrawn()) shared_->barrier(false);  // the others are at later stages
    messages_.exchange();
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

  void combine(const stage& level, T* data, bool last) {
    if (level.inner)
      combine_under(settings_.inner, level, data, last);
    else
      combine_under(rule_, level, data, last);
  }

  template <rule StageRule>
  void combine_under(StageRule& stage_rule, const stage& level, T* data, bool last) {
    const bool measure = needs_gram<StageRule> || settings_.measure;
    const auto n = level.members.size();
    const auto part = level.parts[level.self];
    const auto gram = std::span(gram_).first(segments_.size() * packed_size(n));
    const slice window{segments_, part, part.begin};
    const auto vectors = std::span(vectors_).first(n);
    const bool by_message = !in_place(level);
    const T* room = received_.data();
    for (std::size_t i = 0; i < n; ++i) {
      leaves_[i] = 0;
      for (auto leaf = level.leaves[i]; leaf < level.leaves[i + 1]; ++leaf) leaves_[i] += takes_part_[rank_of_leaf(leaf)];
      if (messages_.withdrawn()) continue;
      vectors[i] = i == level.self ? data + part.begin
                   : by_message    ? std::exchange(room, room + part.size())
                                   : gradient_of(i) + part.begin;
    }

    if (measure && !messages_.withdrawn()) {
      space_.measure(window, std::span<const T* const>(vectors), gram.data());
      space_.fence();
    } else {
      std::ranges::fill(gram, 0.0);
    }
    if (measure) sum(level, gram);
    if (messages_.withdrawn()) return;

    // How many more sums there are, if any, depends on the numbers.
    const auto sum_over_ranks = [&](std::span<double> values) {
      messages_.unscheduled([&] { sum(level, values); });
    };
    spread_ = last && !by_message;
    const round_memory arrays{gram, std::span(weights_).first(segments_.size() * n), std::span(norms_).first(n),
                              std::span(total_).first(packed_size(n)), scratch_};
    weigh_and_mix<T>(
        space_, stage_rule, window, std::span<const T* const>(vectors), std::span(leaves_).first(n), 0, data + part.begin,
        arrays, sum_over_ranks,
        [&](std::size_t k, const segment_outcome& outcome) { note(level, k, outcome, measure); },
        spreader{this, &level, data + part.begin, spread_ ? spread_chunk : spreader::unlimited});
    space_.fence();
  }

  /// Adds inner products over the ranks that hold parts of the stage's vectors.
  void sum(const stage& level, std::span<double> values) {
    if (level.sum_over.size() == 1) return;
    if (in_place(level) && level.survivors == level.members.size() && level.sum_over == level.members) {
      if (!messages_.withdrawn()) shared_->sum(values);
      return;
    }
    const auto self = std::ranges::find(level.sum_over, comm_.rank()) - level.sum_over.begin();
    sum_over_group(level.sum_over, static_cast<std::size_t>(self), values, std::span(sum_room_).first(values.size()),
                   messages_.small_exchange());
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

  report report_;
  std::optional<access> shared_;
  buffer received_;
  messenger<T, Space, Comm> messages_;
  std::vector<double> gram_, sum_room_, weights_, norms_, total_;
  std::vector<const T*> vectors_;
  std::vector<std::size_t> leaves_;
  weigh_scratch scratch_;
  std::vector<bool> takes_part_;      // by rank
  std::vector<unsigned char> flags_;  // which segments are not finite: of every rank, and behind them this one's

  bool spread_ = false;  // the last stage has already written its result to every member's gradient
  std::size_t fallbacks_before_ = 0;
};

}  // namespace adasum::detail
