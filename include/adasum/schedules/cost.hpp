// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <cstddef>
#include <span>

#include "../core/gram.hpp"
#include "../core/report.hpp"
#include "../core/stage.hpp"
#include "machine.hpp"
#include "shared_memory.hpp"
#include "sum_order.hpp"
#include "transfers.hpp"

/// What a schedule costs, counted from its stages, and how long that takes: the model of docs/scale.md.
namespace adasum::schedules {

/// What one rank sends, by all links or by one kind of them.
struct link_cost {
  std::size_t exchanges = 0;     ///< one after another, so each pays the latency
  std::size_t messages = 0;      ///< that this rank sends
  std::size_t busier_bytes = 0;  ///< Σ over the exchanges of the larger of bytes sent and bytes received
  std::size_t handshakes = 0;    ///< exchanges with a message of more than machine::link::eager_bytes
};

/// What one rank computes.
struct arithmetic {
  std::size_t pair_elements = 0;  ///< elements of the slices of two vectors that are measured and mixed
  std::size_t products = 0;       ///< multiply-adds for the inner products of more vectors
  std::size_t terms = 0;          ///< multiply-adds for their linear combinations

  /// Counts so many elements of so many vectors, which are combined.
  constexpr void combine(std::size_t vectors, std::size_t elements) {
    if (vectors == 2) pair_elements += elements;
    if (vectors <= 2) return;
    products += packed_size(vectors) * elements;
    terms += vectors * elements;
  }
  /// Seconds of it, after so many others.
  constexpr double after(double seconds, const machine& on, rate::place length) const {
    return seconds + static_cast<double>(pair_elements) * on.per_pair_element.of(length) +
           static_cast<double>(products) * on.per_product.of(length) +
           static_cast<double>(terms) * on.per_term.of(length);
  }
};

/// What one rank does in one reduction by messages, under a rule that looks at inner products.
struct cost : link_cost, arithmetic {
  std::size_t gradient_bytes = 0;  ///< how long a gradient is
  std::size_t elements = 0;        ///< of the gradient that this rank sends
  std::size_t bytes = 0;           ///< that this rank sends: elements, inner products, norms and weights for the report
  link_cost inside{};  ///< how much of it stays inside the rank's node; nothing where schedule_input::nodes is empty
  /// Ranks that send to other nodes at once, over the link that this rank's node has. Its stages do not tell: cost_of() says
  /// all ranks of the node, and where only some of them carry something across, the caller says how many.
  std::size_t ranks_on_link = 1;
};

/// Seconds of a rank that never waits for a slower one: latency, messages, bytes and arithmetic, one after another.
constexpr double seconds(const cost& of, const machine& on = {}) {
  const auto length = rate::place_of(of.gradient_bytes);
  const auto over = [&](const machine::link& link, const link_cost& some) {
    return static_cast<double>(some.exchanges) * link.latency + static_cast<double>(some.messages) * link.per_message +
           static_cast<double>(some.busier_bytes) * link.per_byte.of(length) +
           static_cast<double>(some.handshakes) * link.handshake;
  };
  const link_cost across{of.exchanges - of.inside.exchanges, of.messages - of.inside.messages,
                         (of.busier_bytes - of.inside.busier_bytes) * of.ranks_on_link,
                         of.handshakes - of.inside.handshakes};
  return of.after(over(on.across, across) + over(on.inside, of.inside), on, length);
}

/// @cond internal
/// Counts what the engine does for the stages of one rank (transfers.hpp, sum_order.hpp).
class cost_counter {
 public:
  cost_counter(std::span<const stage> stages, int rank, int size, const schedule_input& input, const machine& on)
      : rank_(rank), input_(input), eager_{on.across.eager_bytes, on.inside.eager_bytes} {
    total_.gradient_bytes = input.length * input.element_size;
    if (!input.nodes.empty()) total_.ranks_on_link = 0;
    for (int other = 0; other < static_cast<int>(input.nodes.size()); ++other) total_.ranks_on_link += is_inside(other);
    const auto leaves = static_cast<std::size_t>(size);
    const auto most_joined = detail::most_joined(input.element_size, !input.on_device);
    for (const auto& stage : stages) {
      exchange(stage, detail::transfers_to_combine(stage, most_joined));
      exchange(stage, detail::transfers_to_deliver(stage, leaves));
      if (stage.survives()) combine(stage);
    }
  }

  const cost& total() const { return total_; }

 private:
  bool is_inside(int peer) const {
    const auto node_of = [&](int rank) { return input_.nodes[static_cast<std::size_t>(rank)]; };
    return !input_.nodes.empty() && node_of(peer) == node_of(rank_);
  }

  /// A message of this rank to another one, or the other way round. One of no bytes is not sent.
  void count(int peer, std::size_t bytes, bool sent) {
    const bool inside = is_inside(peer);
    auto& link = now_[inside];
    (sent ? link.sent : link.received) += bytes;
    if (bytes > link.longest) link.longest = bytes;
    if (!sent || bytes == 0) return;
    total_.bytes += bytes;
    total_.messages += 1;
    total_.inside.messages += inside;
  }
  /// An exchange over both kinds of links takes as long as one across.
  void end_exchange() {
    const auto across = now_[0].busier(), inside = now_[1].busier();
    total_.exchanges += across + inside > 0;
    total_.inside.exchanges += inside > 0 && across == 0;
    total_.busier_bytes += across + inside;
    total_.inside.busier_bytes += inside;
    const bool long_across = static_cast<double>(now_[0].longest) > eager_[0],
               long_inside = static_cast<double>(now_[1].longest) > eager_[1];
    total_.handshakes += long_across || long_inside;
    total_.inside.handshakes += long_inside && !long_across;
    now_[0] = now_[1] = {};
  }

  /// Elements, records and norms are messages of their own, but for records that are joined to elements.
  void exchange(const stage& stage, const detail::transfers& list) {
    const auto record_bytes = [&](const detail::transfer& one) {
      return one.leaves.size() * input_.segments * sizeof(report::entry);
    };
    const auto norm_bytes = [&](const detail::transfer& one) {
      return one.result_norms ? input_.segments * sizeof(double) : 0;
    };
    for (const auto& one : list.sends) {
      const int peer = stage.members[one.member];
      total_.elements += one.elements.size();
      const auto bytes = one.elements.size() * input_.element_size, joined = one.joined ? record_bytes(one) : 0;
      for (const auto message : {bytes + joined, record_bytes(one) - joined, norm_bytes(one)})
        count(peer, message, true);
    }
    for (const auto& one : list.receives)
      count(stage.members[one.member], one.elements.size() * input_.element_size + record_bytes(one) + norm_bytes(one),
            false);
    end_exchange();
  }

  void combine(const stage& stage) {
    const auto& group = stage.sum_over;
    const auto vectors = stage.members.size();
    total_.combine(vectors, stage.part().size());
    if (group.size() < 2) return;
    const auto bytes = input_.segments * packed_size(vectors) * sizeof(double);
    const detail::sum_order order(group.size(), detail::place_of(rank_, group), detail::sum_radix(vectors));
    for (std::size_t i = 0; i < order.exchanges(); ++i) {
      order.visit(
          i, [&](std::size_t place) { count(group[place], bytes, true); },
          [&](std::size_t place) { count(group[place], bytes, false); });
      end_exchange();
    }
  }

  /// Bytes of one exchange over one kind of link.
  struct traffic {
    std::size_t sent = 0, received = 0, longest = 0;
    std::size_t busier() const { return sent > received ? sent : received; }
  };

  int rank_;
  const schedule_input& input_;
  double eager_[2];  // across, inside
  traffic now_[2];   // of the exchange that is being counted, in the same order
  cost total_;
};
/// @endcond

/// The cost of these stages of a rank. @param on  says which messages are long
inline cost cost_of(std::span<const stage> stages, int rank, int size, const schedule_input& input,
                    const machine& on = {}) {
  return cost_counter(stages, rank, size, input, on).total();
}
/// The cost of a schedule for one rank.
template <class Schedule>
  requires requires(const Schedule& order) { order.stages(0, 1, schedule_input{}); }
cost cost_of(const Schedule& order, int rank, int size, const schedule_input& input, const machine& on = {}) {
  return cost_of(order.stages(rank, size, input), rank, size, input, on);
}

/// What one rank does in one reduction in memory that all ranks share, of a gradient that is copied there and back: counted
/// from its stages, under a rule that looks at inner products. A gradient has N bytes:
///
///     published        N bytes copied, those of P - 1 others read; each rank combines all of them whole; 1 barrier
///     others           2 N bytes copied; for each stage of q ranks with slices of n bytes: n bytes of each other member read
///                      twice and written once, and Gram matrices; each rank combines n bytes of all; 3 barriers. If
///                      there is only one stage, 2 (N - n) bytes are copied: no other rank reads this one's n bytes
///
/// A barrier, or a sum, of more than 8 ranks takes several rounds, one after another (sum_order.hpp). A rank that stays behind
/// at a stage only takes part in its first and last barrier. (What it is told for the report then, by message, is not counted.)
///
/// On several nodes, it counts the stages inside the rank's node.
struct in_place_cost : arithmetic {
  std::size_t gradient_bytes = 0;  ///< how long a gradient is
  std::size_t barriers = 0;        ///< rounds of barriers and sums, one after another
  std::size_t heard = 0;           ///< Σ over the rounds of the ranks that this one waits for, reading a flag of each
  std::size_t copied = 0;          ///< bytes that this rank copies there and back
  std::size_t read = 0;            ///< bytes of others' vectors
  std::size_t numbers = 0;         ///< bytes that it reads of others for sums, and of records for the report
  std::size_t written = 0;         ///< bytes of the result that this rank writes to others
  std::size_t bytes = 0;           ///< all of these

  in_place_cost() = default;
  /// @param stages  of the rank
  in_place_cost(std::span<const stage> stages, int rank, const schedule_input& input)
      : gradient_bytes(input.length * input.element_size) {
    const bool published = stages.size() == 1 && stages.front().published;
    copied = published ? gradient_bytes : 2 * gradient_bytes;
    for (const auto& stage : stages) {
      const auto n = stage.members.size(), others = n - 1;
      if (others == 0) continue;
      for (int i = 0; i < (stage.survives() && published ? 1 : 2); ++i) meet(n, stage.self, detail::sum_radix(2), 0);
      if (!stage.survives()) continue;
      const auto part = stage.part().size(), slice = part * input.element_size;
      read += (published ? 1 : 2) * others * slice;
      if (stage.grouped)
        for (std::size_t i = 0; i < n; ++i)
          if (i != stage.self)
            numbers += detail::known_leaves(stage, i).size() * input.segments * sizeof(report::entry);
      if (stage.sum_over.size() > 1)
        meet(stage.sum_over.size(), detail::place_of(rank, stage.sum_over), detail::sum_radix(n),
             input.segments * packed_size(n) * sizeof(double));
      if (!published) {
        if (stages.size() == 1 && stage.survivors == n) copied -= 2 * slice;
        written += others * slice;
      }
      combine(n, part);
    }
    bytes = copied + read + numbers + written;
  }
  /// Of rank 0 by this schedule.
  in_place_cost(int size, const schedule_input& input, const shared_memory& order = {})
      : in_place_cost(order.stages(0, size, input), 0, input) {}

  /// The same of a gradient that lies in plan.buffer(), and is not copied.
  in_place_cost in_buffer() const {
    in_place_cost of = *this;
    of.bytes -= copied;
    of.copied = 0;
    return of;
  }

 private:
  /// @param bytes_of_each  how many are read of each rank heard from
  void meet(std::size_t ranks, std::size_t self, std::size_t radix, std::size_t bytes_of_each) {
    const detail::sum_order order(ranks, self, radix);
    barriers += order.exchanges();
    for (std::size_t round = 0; round < order.exchanges(); ++round)
      order.visit(
          round, [](std::size_t) {},
          [&](std::size_t) {
            ++heard;
            numbers += bytes_of_each;
          });
  }
};

/// Seconds of a rank that never waits for a slower one.
constexpr double seconds(const in_place_cost& of, const machine& on) {
  const auto length = rate::place_of(of.gradient_bytes);
  const double barriers = static_cast<double>(of.barriers) * on.shared.barrier;
  return of.after(barriers + static_cast<double>(of.bytes) * on.shared.per_byte.of(length), on, length);
}

}  // namespace adasum::schedules
