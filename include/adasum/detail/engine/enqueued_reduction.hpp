// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "../../core/concepts.hpp"
#include "../../core/gram.hpp"
#include "../../core/message.hpp"
#include "../../core/segments.hpp"
#include "../../core/stage.hpp"
#include "../../core/tracing.hpp"
#include "../../schedules/transfers.hpp"
#include "engine_settings.hpp"

/// Runs a schedule on a stream: the same stages as the engine, but messages, sums of inner products, weights and
/// mixing are all enqueued, and the host waits for nothing. So it knows nothing of what it computes: there is no
/// report.
namespace adasum::detail {

template <scalar T, class Space, class Comm, tree_rule Rule, tree_rule Inner>
class enqueued_reduction {
 public:
  /// @param segments  must outlive this object
  enqueued_reduction(Space space, Comm comm, Rule rule, Inner inner, segments_view segments, std::vector<stage> stages)
      : space_(std::move(space)),
        comm_(std::move(comm)),
        rule_(std::move(rule)),
        inner_(std::move(inner)),
        segments_(segments),
        stages_(std::move(stages)) {
    std::size_t received = 0, partial_grams = 0;
    for (const auto& stage : stages_) {
      const auto n = stage.members.size();
      if (stage.survives()) received = std::max(received, (n - 1) * stage.part().size());
      partial_grams = std::max(partial_grams, stage.sum_over.size() * entries(n));
      vectors_.resize(std::max(vectors_.size(), n));
      std::vector<double> counts(n);
      for (std::size_t i = 0; i < n; ++i) counts[i] = static_cast<double>(stage.leaf_count(i));
      leaf_counts_.push_back(space_.template allocate_in_order<double>(n));
      space_.write(counts, leaf_counts_.back().data());
      to_combine_.push_back(transfers_to_combine(stage));
      to_deliver_.push_back(transfers_to_deliver(stage, static_cast<std::size_t>(comm_.size())));
    }
    received_.emplace(space_.template allocate_in_order<T>(received));
    partial_grams_.emplace(space_.template allocate_in_order<double>(partial_grams));
  }
  enqueued_reduction(const enqueued_reduction&) = delete;
  enqueued_reduction& operator=(const enqueued_reduction&) = delete;

  /// Enqueues the reduction of the gradient at `data`, in place.
  void enqueue(T* data) {
    std::size_t done = 0;
    for (; done < stages_.size(); ++done) {
      exchange(done, to_combine_[done], data, received_->data());
      if (!stages_[done].survives()) break;
      if (stages_[done].inner)
        combine(inner_, done, data);
      else
        combine(rule_, done, data);
    }
    if (done < stages_.size()) deliver(done, data);
    while (done-- > 0) deliver(done, data);
  }

 private:
  std::size_t entries(std::size_t members) const { return segments_.size() * packed_size(members); }

  // ── messages ──

  void begin() {
    out_.clear();
    in_.clear();
  }
  template <class Element>
  void send(int peer, const Element* elements, std::size_t count) {
    if (count > 0) out_.push_back({peer, std::as_bytes(std::span(elements, count)), memory_kind::space});
  }
  template <class Element>
  void receive(int peer, Element* elements, std::size_t count) {
    if (count > 0) in_.push_back({peer, std::as_writable_bytes(std::span(elements, count)), memory_kind::space});
  }
  void exchange() {
    if (!out_.empty() || !in_.empty()) comm_.enqueue(space_, out_, in_);
  }

  /// The elements of some transfers: there is no report. @param aside  where they are received; null: in the gradient
  void exchange(std::size_t number, const transfers& list, T* data, T* aside) {
    const trace_range range(active_tracer, aside ? "bring" : "deliver", number);
    const auto& stage = stages_[number];
    begin();
    for (const auto& one : list.sends) send(stage.members[one.member], data + one.elements.begin, one.elements.size());
    for (const auto& one : list.receives) {
      T* const to = aside ? std::exchange(aside, aside + one.elements.size()) : data + one.elements.begin;
      receive(stage.members[one.member], to, one.elements.size());
    }
    exchange();
  }
  void deliver(std::size_t number, T* data) { exchange(number, to_deliver_[number], data, nullptr); }

  // ── arithmetic ──

  template <class StageRule>
  void combine(const StageRule& stage_rule, std::size_t number, T* data) {
    const trace_range range(active_tracer, "combine", number);
    const auto& stage = stages_[number];
    const auto n = stage.members.size();
    if (n == 1) return;
    const auto part = stage.part();
    const T* received = received_->data();
    for (std::size_t i = 0; i < n; ++i)
      vectors_[i] = i == stage.self ? data + part.begin : std::exchange(received, received + part.size());
    const slice window{segments_, part, part.begin};
    const auto vectors = std::span<const T* const>(vectors_).first(n);
    double* const gram = space_.template measure_on_device<T>(window, vectors);
    sum(stage, gram, entries(n));
    const double* const weights =
        space_.weigh_on_device(stage_rule, gram, segments_.size(), n, leaf_counts_[number].data());
    space_.template mix_on_device<T>(window, vectors, weights, data + part.begin);
  }

  /// Adds inner products over the ranks that hold parts of the stage's vectors. Each of them gets all terms and adds
  /// them in the order of the group: one exchange, and the same bits on all of them.
  void sum(const stage& stage, double* gram, std::size_t count) {
    const auto& group = stage.sum_over;
    if (group.size() == 1) return;
    begin();
    for (std::size_t i = 0; i < group.size(); ++i) {
      double* const place = partial_grams_->data() + i * count;
      if (group[i] == comm_.rank()) {
        space_.transfer(gram, place, count * sizeof(double));
        continue;
      }
      send(group[i], gram, count);
      receive(group[i], place, count);
    }
    exchange();
    space_.add_pieces(partial_grams_->data(), group.size(), count, gram);
  }

  template <class Element>
  using buffer = decltype(std::declval<const Space&>().template allocate_in_order<Element>(0));

  Space space_;
  Comm comm_;
  Rule rule_;
  Inner inner_;
  segments_view segments_;
  std::vector<stage> stages_;
  std::vector<transfers> to_combine_, to_deliver_;  // of each stage
  std::vector<buffer<double>> leaf_counts_;         // of each stage's members: how many gradients each combines
  std::optional<buffer<T>> received_;
  std::optional<buffer<double>> partial_grams_;
  std::vector<const T*> vectors_;
  std::vector<outgoing> out_;
  std::vector<incoming> in_;
};

}  // namespace adasum::detail
