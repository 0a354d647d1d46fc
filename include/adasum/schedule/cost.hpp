// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "../core/gram.hpp"
#include "../core/report.hpp"
#include "../core/stage.hpp"
#include "sum_order.hpp"
#include "transfers.hpp"

/// What a schedule costs, counted from its stages, and how long that takes: the model of docs/scale.md.
namespace adasum::schedules {

/// What one rank does in one reduction by messages, under a rule that looks at inner products.
struct cost {
  std::size_t exchanges = 0;      ///< one after another, so each pays the latency
  std::size_t messages = 0;       ///< that this rank sends
  std::size_t elements = 0;       ///< of the gradient that this rank sends
  std::size_t bytes = 0;          ///< that this rank sends: elements, inner products, norms and weights for the report
  std::size_t busier_bytes = 0;   ///< Σ over the exchanges of the larger of bytes sent and bytes received
  std::size_t pair_elements = 0;  ///< elements of the slices of two vectors that are measured and mixed
  std::size_t products = 0;       ///< multiply-adds for the inner products of more vectors
  std::size_t terms = 0;          ///< multiply-adds for their linear combinations
};

/// A network and a processor. The defaults are those of docs/scale.md: InfiniBand of 100 Gb/s, and serial_space's
/// kernels for floats as bench/scale measured them on one core of an AMD EPYC (Zen 5). Which schedule is the cheapest
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

/// Counts what the engine does for the stages of one rank (transfers.hpp, sum_order.hpp).
class cost_counter {
 public:
  cost_counter(const std::vector<stage>& stages, int rank, int size, const schedule_input& input)
      : rank_(rank), input_(input) {
    const auto leaves = static_cast<std::size_t>(size);
    for (const auto& stage : stages) {
      add(detail::transfers_to_combine(stage));
      add(detail::transfers_to_deliver(stage, leaves));
      if (stage.survives()) combine(stage);
    }
  }

  const cost& total() const { return total_; }

 private:
  /// One exchange. Messages of no bytes are not sent.
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

  /// Elements, records and norms are messages of their own.
  void add(const detail::transfers& exchange) {
    traffic one;
    const auto record_bytes = [&](const detail::transfer& t) {
      return t.leaves.size() * input_.segments * sizeof(report::entry);
    };
    const auto norm_bytes = [&](const detail::transfer& t) {
      return t.result_norms ? input_.segments * sizeof(double) : 0;
    };
    for (const auto& t : exchange.sends) {
      total_.elements += t.elements.size();
      one.send(t.elements.size() * input_.element_size);
      one.send(record_bytes(t));
      one.send(norm_bytes(t));
    }
    for (const auto& t : exchange.receives)
      one.receive(t.elements.size() * input_.element_size + record_bytes(t) + norm_bytes(t));
    add(one);
  }

  void combine(const stage& stage) {
    const auto n = stage.members.size(), part = stage.part().size();
    if (n == 2) total_.pair_elements += part;
    if (n > 2) total_.products += packed_size(n) * part;
    if (n > 2) total_.terms += n * part;
    if (stage.sum_over.size() > 1) sum(stage.sum_over, n);
  }

  void sum(const std::vector<int>& group, std::size_t vectors) {
    const std::size_t bytes = input_.segments * packed_size(vectors) * sizeof(double);
    const auto self = static_cast<std::size_t>(std::ranges::find(group, rank_) - group.begin());
    const detail::sum_order order(group.size(), self, detail::sum_radix(vectors));
    for (std::size_t i = 0; i < order.exchanges(); ++i) {
      traffic one;
      order.visit(i, [&](std::size_t) { one.send(bytes); }, [&](std::size_t) { one.receive(bytes); });
      add(one);
    }
  }

  int rank_;
  schedule_input input_;
  cost total_;
};

/// The cost of a schedule for one rank.
template <class Schedule>
cost cost_of(const Schedule& order, int rank, int size, const schedule_input& input) {
  return cost_counter(order.stages(rank, size, input), rank, size, input).total();
}

}  // namespace adasum::schedules
