// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "../core/gram.hpp"
#include "../core/report.hpp"
#include "../core/stage.hpp"
#include "machine.hpp"
#include "sum_order.hpp"
#include "transfers.hpp"

/// What a schedule costs, counted from its stages, and how long that takes: the model of docs/scale.md.
namespace adasum::schedules {

/// What one rank does in one reduction by messages, under a rule that looks at inner products: in each stage, or, where
/// schedule_input::sums says so and there are several stages, beside sums of vectors (detail/collective/run_of_sums.hpp).
struct cost {
  std::size_t gradient_bytes = 0;  ///< how long a gradient is
  std::size_t exchanges = 0;      ///< one after another, so each pays the latency
  std::size_t messages = 0;       ///< that this rank sends
  std::size_t elements = 0;       ///< of the gradient that this rank sends
  std::size_t bytes = 0;          ///< that this rank sends: elements, inner products, norms and weights for the report
  std::size_t busier_bytes = 0;   ///< Σ over the exchanges of the larger of bytes sent and bytes received
  std::size_t pair_elements = 0;  ///< elements of the slices of two vectors that are measured and mixed
  std::size_t products = 0;       ///< multiply-adds for the inner products of more vectors
  std::size_t terms = 0;          ///< multiply-adds for their linear combinations

  std::size_t handshakes = 0;  ///< exchanges with a message of more than machine::link::eager_bytes

  /// How much of it goes over one kind of link.
  struct part {
    std::size_t exchanges = 0;     ///< as in cost
    std::size_t messages = 0;      ///< as in cost
    std::size_t busier_bytes = 0;  ///< as in cost
    std::size_t handshakes = 0;    ///< as in cost
  };
  part inside{};  ///< how much of it stays inside the rank's node; nothing where schedule_input::nodes is empty
  std::size_t ranks_on_link = 1;  ///< that send to other nodes at once, over the link that this rank's node has
};

/// Seconds of a rank that never waits for a slower one: latency, messages, bytes and arithmetic, one after another.
constexpr double seconds(const cost& of, const machine& on = {}) {
  const auto times = [&](std::size_t count, const rate& each) {
    return static_cast<double>(count) * each.of(of.gradient_bytes);
  };
  const auto over = [&](const machine::link& link, const cost::part& some, std::size_t sharers) {
    return times(some.exchanges, link.latency) + times(some.messages, link.per_message) +
           times(some.busier_bytes * sharers, link.per_byte) + times(some.handshakes, link.handshake);
  };
  const cost::part across{of.exchanges - of.inside.exchanges, of.messages - of.inside.messages,
                          of.busier_bytes - of.inside.busier_bytes, of.handshakes - of.inside.handshakes};
  return over(on.across, across, of.ranks_on_link) + over(on.inside, of.inside, 1) +
         times(of.pair_elements, on.per_pair_element) + times(of.products, on.per_product) +
         times(of.terms, on.per_term);
}

/// Counts what the engine does for the stages of one rank (transfers.hpp, sum_order.hpp).
class cost_counter {
 public:
  /// @param on  says which messages are long
  cost_counter(const std::vector<stage>& stages, int rank, int size, const schedule_input& input,
               const machine& on = {})
      : rank_(rank), input_(input), eager_across_(on.across.eager_bytes), eager_inside_(on.inside.eager_bytes) {
    total_.gradient_bytes = input.length * input.element_size;
    if (!input.nodes.empty())
      total_.ranks_on_link = static_cast<std::size_t>(std::ranges::count(input.nodes, node_of(rank)));
    const auto leaves = static_cast<std::size_t>(size);
    if (input.sums > 0 && !is_one_stage_of_all(stages, size)) {
      for (std::size_t i = 0; i < input.sums; ++i) sum_of_vectors(stages, leaves);
      measure_and_gather(leaves);
      return;
    }
    const auto most_joined = detail::most_joined(input.element_size, !input.on_device);
    for (const auto& stage : stages) {
      add(stage, detail::transfers_to_combine(stage, most_joined));
      add(stage, detail::transfers_to_deliver(stage, leaves));
      if (stage.survives()) combine(stage);
    }
  }

  /// All of it.
  const cost& total() const { return total_; }

 private:
  int node_of(int rank) const { return input_.nodes[static_cast<std::size_t>(rank)]; }
  bool is_inside(int peer) const { return !input_.nodes.empty() && node_of(peer) == node_of(rank_); }

  /// One exchange. Messages of no bytes are not sent.
  struct traffic {
    std::size_t messages = 0, sent = 0, received = 0, longest = 0;
    void send(std::size_t bytes) {
      messages += bytes > 0;
      sent += bytes;
      longest = std::max(longest, bytes);
    }
    void receive(std::size_t bytes) {
      received += bytes;
      longest = std::max(longest, bytes);
    }
    bool is_long(double eager_bytes) const { return static_cast<double>(longest) > eager_bytes; }
    bool any() const { return sent + received > 0; }
    std::size_t busier() const { return std::max(sent, received); }
  };
  struct traffic_by_link {
    traffic across, inside;
  };
  traffic& link_to(int peer, traffic_by_link& both) const { return is_inside(peer) ? both.inside : both.across; }

  void add(const traffic_by_link& one) {
    const auto& [across, inside] = one;
    total_.exchanges += across.any() || inside.any();
    total_.inside.exchanges += inside.any() && !across.any();
    total_.messages += across.messages + inside.messages;
    total_.inside.messages += inside.messages;
    total_.bytes += across.sent + inside.sent;
    total_.busier_bytes += across.busier() + inside.busier();
    total_.inside.busier_bytes += inside.busier();
    const bool long_across = across.is_long(eager_across_), long_inside = inside.is_long(eager_inside_);
    total_.handshakes += long_across || long_inside;
    total_.inside.handshakes += long_inside && !long_across;
  }

  /// Elements, records and norms are messages of their own, but for records that are joined to elements.
  void add(const stage& stage, const detail::transfers& exchange) {
    traffic_by_link both;
    const auto record_bytes = [&](const detail::transfer& t) {
      return t.leaves.size() * input_.segments * sizeof(report::entry);
    };
    const auto norm_bytes = [&](const detail::transfer& t) {
      return t.result_norms ? input_.segments * sizeof(double) : 0;
    };
    for (const auto& t : exchange.sends) {
      auto& link = link_to(stage.members[t.member], both);
      total_.elements += t.elements.size();
      link.send(t.elements.size() * input_.element_size + (t.joined ? record_bytes(t) : 0));
      link.send(t.joined ? 0 : record_bytes(t));
      link.send(norm_bytes(t));
    }
    for (const auto& t : exchange.receives)
      link_to(stage.members[t.member], both)
          .receive(t.elements.size() * input_.element_size + record_bytes(t) + norm_bytes(t));
    add(both);
  }

  void sum_of_vectors(const std::vector<stage>& stages, std::size_t leaves) {
    for (const auto& stage : stages) {
      add(stage, detail::elements_of(detail::transfers_to_combine(stage)));
      add(stage, detail::elements_of(detail::transfers_to_deliver(stage, leaves)));
      if (stage.survives()) total_.terms += stage.members.size() * stage.part().size();
    }
  }
  /// The products of this rank's gradient with itself and with the mean, and all ranks' numbers to all (allgather.hpp):
  /// at most these, since a rule of the whole model needs one row sum in place of one for each segment.
  void measure_and_gather(std::size_t ranks) {
    total_.products += packed_size(input_.sums) * input_.length;
    const std::size_t block = input_.sums * input_.segments * sizeof(double);
    const auto self = static_cast<std::size_t>(rank_);
    for (std::size_t have = 1; have < ranks; have *= 2) {
      const auto bytes = std::min(have, ranks - have) * block;
      traffic_by_link both;
      link_to(static_cast<int>((self + ranks - have) % ranks), both).send(bytes);
      link_to(static_cast<int>((self + have) % ranks), both).receive(bytes);
      add(both);
    }
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
      traffic_by_link both;
      order.visit(
          i, [&](std::size_t place) { link_to(group[place], both).send(bytes); },
          [&](std::size_t place) { link_to(group[place], both).receive(bytes); });
      add(both);
    }
  }

  int rank_;
  schedule_input input_;
  double eager_across_, eager_inside_;
  cost total_;
};

/// The cost of a schedule for one rank.
template <class Schedule>
cost cost_of(const Schedule& order, int rank, int size, const schedule_input& input, const machine& on = {}) {
  return cost_counter(order.stages(rank, size, input), rank, size, input, on).total();
}

}  // namespace adasum::schedules
