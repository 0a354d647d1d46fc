// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "../core/gram.hpp"
#include "../core/report.hpp"
#include "../core/stage.hpp"
#include "../core/sum_order.hpp"

/// What a schedule costs, counted from its stages, and how long that takes: the model of docs/scale.md.
namespace adasum::schedules {

/// What one rank does in one reduction by messages, under a rule that looks at inner products.
struct cost {
  std::size_t exchanges = 0;      ///< one after another, so each pays the latency
  std::size_t messages = 0;       ///< sent
  std::size_t elements = 0;       ///< of the gradient, sent
  std::size_t bytes = 0;          ///< sent: elements, inner products, what is known for the report
  std::size_t busier_bytes = 0;   ///< Σ over the exchanges of the larger of bytes sent and bytes received
  std::size_t pair_elements = 0;  ///< elements of the slices of two vectors that are measured and mixed
  std::size_t products = 0;       ///< multiply-adds for the inner products of more vectors
  std::size_t terms = 0;          ///< multiply-adds for their linear combinations
};

/// A network and a processor. The defaults are those of docs/scale.md: InfiniBand of 100 Gb/s, and serial_space's
/// kernels for floats as bench/scale measured them on one core of an AMD EPYC (Zen 5). A choice between schedules
/// depends on the ratios only.
struct machine {
  double latency = 1e-6;              ///< seconds from rank to rank
  double per_message = 2e-7;          ///< seconds of processors, its sender's and its receiver's, for one message
  double per_byte = 0.08e-9;          ///< seconds, the inverse of the bandwidth
  double per_pair_element = 0.13e-9;  ///< seconds; 0.09 in the caches, 0.26 in memory
  double per_product = 0.017e-9;      ///< seconds
  double per_term = 0.04e-9;          ///< seconds; 0.03 in the caches, up to 0.1 in memory
};

/// Seconds of a rank that never waits for a slower one: latency, messages, bytes and arithmetic, one after another.
constexpr double seconds(const cost& of, const machine& on = {}) {
  const auto times = [](std::size_t count, double each) { return static_cast<double>(count) * each; };
  return times(of.exchanges, on.latency) + times(of.messages, on.per_message) + times(of.busier_bytes, on.per_byte) +
         times(of.pair_elements, on.per_pair_element) + times(of.products, on.per_product) +
         times(of.terms, on.per_term);
}

/// Counts what collective/stage_actions.hpp does for the stages of one rank.
class cost_counter {
 public:
  cost_counter(const std::vector<stage>& stages, int rank, int size, const problem& what)
      : rank_(rank), what_(what), ranks_(static_cast<std::size_t>(size)) {
    std::size_t done = 0;
    for (; done < stages.size(); ++done) {
      meet(stages[done]);
      if (!stages[done].survives()) break;
      combine(stages[done]);
    }
    if (done < stages.size()) receive_result(stages[done]);
    while (done-- > 0) gather(stages[done]);
  }

  const cost& total() const { return total_; }

 private:
  /// One exchange: nothing of it is an empty message.
  struct traffic {
    std::size_t messages = 0, sent = 0, received = 0;
    void send(std::size_t bytes) {
      messages += bytes > 0;
      sent += bytes;
    }
    void receive(std::size_t bytes) { received += bytes; }
  };
  void add(const traffic& one) {
    total_.exchanges += one.sent + one.received > 0;
    total_.messages += one.messages;
    total_.bytes += one.sent;
    total_.busier_bytes += std::max(one.sent, one.received);
  }

  std::size_t row_bytes(std::size_t gradients) const { return gradients * what_.segments * sizeof(report::entry); }
  std::size_t norms_bytes() const { return what_.segments * sizeof(double); }
  /// What member i knows of the gradients in its vector: nothing yet of a single one.
  std::size_t note_bytes(const stage& level, std::size_t i) const {
    const auto gradients = level.leaves[i + 1] - level.leaves[i];
    return gradients > 1 ? row_bytes(gradients) : 0;
  }
  void send_elements(traffic& one, index_range part) {
    total_.elements += part.size();
    one.send(part.size() * what_.element_size);
  }
  void receive_elements(traffic& one, index_range part) const { one.receive(part.size() * what_.element_size); }

  void meet(const stage& level) {
    traffic one;
    for (std::size_t i = 0; i < level.members.size(); ++i) {
      if (i == level.self) continue;
      if (i < level.survivors) {
        send_elements(one, level.parts[i]);
        one.send(note_bytes(level, level.self));
      }
      if (level.survives()) {
        receive_elements(one, level.parts[level.self]);
        one.receive(note_bytes(level, i));
      }
    }
    add(one);
  }

  void combine(const stage& level) {
    const auto n = level.members.size(), part = level.parts[level.self].size();
    if (n == 2) total_.pair_elements += part;
    if (n > 2) total_.products += packed_size(n) * part;
    if (n > 2) total_.terms += n * part;
    if (level.sum_over.size() > 1) sum(level.sum_over, n);
  }

  /// As collective/group_sum.hpp does.
  void sum(const std::vector<int>& group, std::size_t vectors) {
    const std::size_t bytes = what_.segments * packed_size(vectors) * sizeof(double);
    const auto self = static_cast<std::size_t>(std::ranges::find(group, rank_) - group.begin());
    const sum_order order(group.size(), self, sum_radix(vectors));
    for (std::size_t i = 0; i < order.exchanges(); ++i) {
      traffic one;
      order.visit(i, [&](std::size_t) { one.send(bytes); }, [&](std::size_t) { one.receive(bytes); });
      add(one);
    }
  }

  void gather(const stage& level) {
    traffic one;
    for (std::size_t i = 0; i < level.members.size(); ++i) {
      if (i == level.self) continue;
      const bool waits = i >= level.survivors, told_by_me = waits && level.self == 0;
      if (!level.replicated() || told_by_me) send_elements(one, level.parts[level.self]);
      if (!level.replicated() && !waits) receive_elements(one, level.parts[i]);
      if (!told_by_me) continue;
      one.send(row_bytes(ranks_));
      one.send(norms_bytes());
    }
    add(one);
  }

  void receive_result(const stage& level) {
    traffic one;
    for (std::size_t i = 0; i < level.survivors; ++i)
      if (i == 0 || !level.replicated()) receive_elements(one, level.parts[i]);
    one.receive(row_bytes(ranks_) + norms_bytes());
    add(one);
  }

  int rank_;
  problem what_;
  std::size_t ranks_;
  cost total_;
};

/// The cost of a schedule for one rank.
template <class Schedule>
cost cost_of(const Schedule& order, int rank, int size, const problem& what) {
  return cost_counter(order.stages(rank, size, what), rank, size, what).total();
}

}  // namespace adasum::schedules
