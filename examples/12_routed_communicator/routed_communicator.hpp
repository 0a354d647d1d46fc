// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <adasum/core/communicator_state.hpp>
#include <adasum/core/error.hpp>
#include <adasum/core/message.hpp>

namespace example {

/// Ranks that use one communicator inside a node and another between nodes: NCCL inside and MPI across, for example, as in
/// the original system (Maleki et al., MLSys 2021, section 4). With schedules::hierarchical, each stage uses one of the
/// two.
///
///     example::routed_communicator comm{adasum::nccl_communicator{node_comm},
///                                       adasum::mpi_communicator{MPI_COMM_WORLD}, nodes};
///
/// Ranks are numbered as on the outer communicator. On the inner one, the ranks of a node must have the same order.
template <class Inner, class Outer>
class routed_communicator {
 public:
  /// @param node_of_rank  any numbers, equal for ranks of one node; the same on all ranks (mpi_communicator::nodes())
  /// @throws bad_input    the numbers of ranks, or of the node's ranks, do not fit the communicators, or the order of
  ///                      ranks differs
  routed_communicator(Inner inner, Outer outer, std::vector<int> node_of_rank)
      : inner_(std::move(inner)),
        inner_rank_(node_of_rank.size(), -1),
        shared_(std::make_shared<shared>(std::move(outer))) {
    const auto& across = shared_->outer;
    if (node_of_rank.size() != static_cast<std::size_t>(across.size()))
      throw adasum::bad_input("routed_communicator: nodes of " + std::to_string(node_of_rank.size()) +
                              " ranks are given, the outer communicator has " + std::to_string(across.size()));
    const auto mine = static_cast<std::size_t>(across.rank());
    int in_node = 0;
    for (std::size_t r = 0; r < node_of_rank.size(); ++r)
      if (node_of_rank[r] == node_of_rank[mine]) inner_rank_[r] = in_node++;
    if (in_node != inner_.size() || inner_rank_[mine] != inner_.rank())
      throw adasum::bad_input("routed_communicator: rank " + std::to_string(mine) + " is number " +
                              std::to_string(inner_rank_[mine]) + " of " + std::to_string(in_node) +
                              " in its node, but " + std::to_string(inner_.rank()) + " of " +
                              std::to_string(inner_.size()) + " on the inner communicator");
  }

  int rank() const { return shared_->outer.rank(); }
  int size() const { return shared_->outer.size(); }

  /// That of the outer communicator, if it has one, but for the plans. Whether this rank has given up waiting on the inner one
  /// is known here alone.
  adasum::communicator_state& state() const { return shared_->state; }

  /// Blocks until every message has been sent and received; those inside the node first.
  /// @throws std::bad_alloc  nothing has been sent or received, on either communicator
  template <class Space>
  void exchange(const Space& space, std::span<const adasum::outgoing> out, std::span<const adasum::incoming> in) const {
    auto& inside = shared_->inside;
    auto& outside = shared_->outside;
    split(out, inside.out, outside.out);
    split(in, inside.in, outside.in);
    if (inside.empty()) {
      if (!outside.empty()) shared_->outer.exchange(space, outside.out, outside.in);
      return;
    }
    std::exception_ptr failure;
    try {
      inner_.exchange(space, inside.out, inside.in);
    } catch (const std::bad_alloc&) {  // neither half has begun
      throw;
    } catch (...) {
      failure = std::current_exception();
      if (const auto* const known = state_of(inner_); known && known->gave_up()) state().give_up();
    }
    try {  // in any case: other nodes wait for it
      if (!outside.empty()) exchange_outside_after_inside(space);
    } catch (...) {
      if (!failure) failure = std::current_exception();
    }
    if (failure) std::rethrow_exception(failure);
  }

  /// See the concept communicator_for: of both communicators, where they offer it.
  void reserve(std::size_t messages, std::size_t longest) const {
    for (half* const one : {&shared_->inside, &shared_->outside}) {
      one->out.reserve(messages);
      one->in.reserve(messages);
    }
    if constexpr (requires { inner_.reserve(messages, longest); }) inner_.reserve(messages, longest);
    if constexpr (requires(const Outer& outer) { outer.reserve(messages, longest); })
      shared_->outer.reserve(messages, longest);
  }

 private:
  /// Null for a communicator that has none.
  template <class Comm>
  static adasum::communicator_state* state_of([[maybe_unused]] const Comm& comm) {
    if constexpr (requires { comm.state(); })
      return &comm.state();
    else
      return nullptr;
  }

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

  /// To the library, std::bad_alloc means that nothing has been exchanged, and it exchanges everything again. Since the half
  /// inside is through, the half outside alone is begun again, and if there is no memory then, the error is another one, which
  /// was made beforehand.
  template <class Space>
  void exchange_outside_after_inside(const Space& space) const {
    const auto& outer = shared_->outer;
    const auto& outside = shared_->outside;
    try {
      outer.exchange(space, outside.out, outside.in);
    } catch (const std::bad_alloc&) {
      try {
        outer.exchange(space, outside.out, outside.in);
      } catch (const std::bad_alloc&) {
        throw adasum::communication_error(shared_->no_memory);
      }
    }
  }

  struct half {
    bool empty() const { return out.empty() && in.empty(); }
    std::vector<adasum::outgoing> out;
    std::vector<adasum::incoming> in;
  };
  struct shared {  // by all handles
    explicit shared(Outer across) : outer(std::move(across)), state(state_of(outer)) {}
    Outer outer;  // lives longer than the state, which refers to its state
    adasum::communicator_state state;
    half inside, outside;  // kept between exchanges for their memory
    adasum::communication_error no_memory{
        "routed_communicator: there was no memory to exchange messages between nodes"};
  };

  Inner inner_;
  std::vector<int> inner_rank_;  // of each rank, -1 for those of other nodes
  std::shared_ptr<shared> shared_;
};

}  // namespace example
