// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../core/deferred_error.hpp"
#include "../core/ended_exchange.hpp"
#include "../core/error.hpp"
#include "../core/message.hpp"
#include "../core/optional_members.hpp"

namespace adasum {

/// Ranks that use one communicator inside a node and another between nodes: NCCL inside and MPI across, for example, as in
/// the original system (Maleki et al., MLSys 2021, section 4). With schedules::hierarchical, each stage uses one of the
/// two.
///
///     adasum::routed_communicator comm{adasum::nccl_communicator{node_comm},
///                                      adasum::mpi_communicator{MPI_COMM_WORLD}, nodes};
///
/// Ranks are numbered as on the outer communicator. On the inner one, the ranks of a node must have the same order.
template <class Inner, class Outer>
class routed_communicator {
 public:
  /// @param node_of_rank  any numbers, equal for ranks of one node; the same on all ranks (mpi_communicator::nodes())
  /// @throws bad_input    the numbers of ranks, or of the node's ranks, do not fit the communicators, or the order of
  ///                      ranks differs
  routed_communicator(Inner inner, Outer outer, std::vector<int> node_of_rank)
      : inner_(std::move(inner)), outer_(std::move(outer)), inner_rank_(node_of_rank.size(), -1) {
    if (node_of_rank.size() != static_cast<std::size_t>(outer_.size()))
      throw bad_input("adasum::routed_communicator: nodes are given for " +
                      detail::counted(node_of_rank.size(), "rank") + ", the outer communicator has " +
                      std::to_string(outer_.size()));
    int in_node = 0;
    for (std::size_t r = 0; r < node_of_rank.size(); ++r)
      if (node_of_rank[r] == node_of_rank[static_cast<std::size_t>(outer_.rank())]) inner_rank_[r] = in_node++;
    if (in_node != inner_.size() || inner_rank_[static_cast<std::size_t>(outer_.rank())] != inner_.rank())
      throw bad_input("adasum::routed_communicator: rank " + std::to_string(outer_.rank()) + " is number " +
                      std::to_string(inner_rank_[static_cast<std::size_t>(outer_.rank())]) + " of " +
                      std::to_string(in_node) + " in its node, but " + std::to_string(inner_.rank()) + " of " +
                      std::to_string(inner_.size()) + " on the inner communicator");
  }

  /// The number of this rank, from 0.
  int rank() const { return outer_.rank(); }
  /// How many ranks there are.
  int size() const { return outer_.size(); }

  /// Whether a plan is in flight, where the outer communicator knows.
  bool& reduction_in_flight() const
    requires requires(const Outer& outer) {
      { outer.reduction_in_flight() } -> std::same_as<bool&>;
    }
  {
    return outer_.reduction_in_flight();
  }

  /// Whether this rank has given up waiting on one of the two communicators, where these know.
  bool gave_up() const { return detail::gave_up(inner_) || detail::gave_up(outer_); }
  /// As the two communicators say, where they do.
  void require_usable(const char* call) const {
    if constexpr (requires { inner_.require_usable(call); }) inner_.require_usable(call);
    if constexpr (requires { outer_.require_usable(call); }) outer_.require_usable(call);
  }

  /// Blocks until every message has been sent and received; those inside the node first.
  /// @throws std::bad_alloc  nothing has been sent or received, on either communicator
  template <class Space>
  void exchange(const Space& space, std::span<const outgoing> out, std::span<const incoming> in) const {
    if (gave_up())
      throw timeout_error("adasum::routed_communicator: rank " + std::to_string(rank()) +
                              " cannot use this communicator any more: it has waited in vain before",
                          -1);
    auto& inside = lists_->inside;
    auto& outside = lists_->outside;
    auto& ended = lists_->ended;
    split(out, inside.out, outside.out);
    split(in, inside.in, outside.in);
    detail::deferred_error run;  // a failure inside must not leave other nodes waiting
    if (!inside.empty()) {
      try {
        inner_.exchange(space, inside.out, inside.in);
      } catch (const std::bad_alloc&) {  // neither half has begun
        throw;
      } catch (...) {
        run.even_after_failure([] { throw; });
        for (auto& message : outside.out) message.withheld = true;
      }
    }
    if (!outside.empty()) {
      const auto across = [&] { outer_.exchange(space, outside.out, outside.in); };
      if (inside.empty()) return across();
      run.even_after_failure([&] { ended.report([&] { again_if_out_of_memory(across); }); });
    }
    run.rethrow();
  }

  /// See the concept communicator_for: of both communicators, where they offer it.
  void reserve(std::size_t messages, std::size_t longest) const {
    for (half* const one : {&lists_->inside, &lists_->outside}) {
      one->out.reserve(messages);
      one->in.reserve(messages);
    }
    if constexpr (requires { inner_.reserve(messages, longest); }) inner_.reserve(messages, longest);
    if constexpr (requires { outer_.reserve(messages, longest); }) outer_.reserve(messages, longest);
  }

 private:
  template <class Message>
  void split(std::span<const Message> all, std::vector<Message>& inside, std::vector<Message>& outside) const {
    inside.clear();
    outside.clear();
    for (const auto& message : all) {
      const int peer = inner_rank_[static_cast<std::size_t>(message.peer)];
      if (peer < 0) {
        outside.push_back(message);
      } else {
        inside.push_back(message);
        inside.back().peer = peer;
      }
    }
  }

  /// Half of an exchange that cannot be begun again as a whole, since the other half has ended. Whoever waits for it is
  /// better off if it succeeds the second time.
  template <class Half>
  static void again_if_out_of_memory(const Half& half) {
    try {
      half();
    } catch (const std::bad_alloc&) {
      half();
    }
  }

  struct half {
    bool empty() const { return out.empty() && in.empty(); }
    std::vector<outgoing> out;
    std::vector<incoming> in;
  };
  struct lists {
    half inside, outside;
    detail::ended_exchange ended;
  };

  Inner inner_;
  Outer outer_;
  std::vector<int> inner_rank_;                               // of each rank, -1 for those of other nodes
  std::shared_ptr<lists> lists_ = std::make_shared<lists>();  // kept between exchanges for their memory
};

}  // namespace adasum
