// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "../core/communicator_state.hpp"
#include "../core/concepts.hpp"
#include "../core/error.hpp"
#include "../core/message.hpp"
#include "../detail/references/communicator_ref.hpp"
#include "../detail/references/erased.hpp"
#include "../detail/references/shared_window_ref.hpp"

namespace adasum {

namespace detail {
/// What communicators are told of the memory of messages: it is that of the host.
struct host_space {};
}  // namespace detail

/// Any communicator for gradients in memory of the host, chosen at run time: what is compiled for this one serves all of
/// them. It does what the one that it holds does, at the price of an indirect call for each exchange.
///
///     const adasum::any_communicator ranks = distributed ? adasum::any_communicator(adasum::mpi_communicator(comm))
///                                                        : adasum::any_communicator(adasum::self_communicator());
///
/// Where the held one shares memory of one address space, that memory is used as that of several processes is. Where
/// the held one cannot post, exchanges that are posted take place in post(). The settings of the held one, such as a
/// timeout, are made there, before or afterwards: both are handles to the same ranks.
///
/// A default-constructed one is empty, and so is one that was moved from: it can be copied, assigned to, and tested (`if
/// (comm)`); anything else throws bad_input.
class any_communicator {
 public:
  /// An empty communicator.
  any_communicator() = default;

  /// Holds a copy of this one, which is a handle to the same ranks.
  template <class Comm>
    requires(!std::same_as<Comm, any_communicator> && communicator_for<Comm, detail::host_space>)
  explicit any_communicator(Comm comm) : held_(std::make_shared<contents>(std::move(comm))) {}

  /// Whether this communicator has ranks, that is, is not empty.
  explicit operator bool() const noexcept { return held_ != nullptr; }

  /// The number of this rank, from 0.
  int rank() const { return get().comm.rank(); }
  /// How many ranks there are.
  int size() const { return get().comm.size(); }
  communicator_state& state() const { return get().state; }
  /// The node of each rank: one node for all where the held one does not know.
  std::span<const int> nodes() const { return get().nodes; }

  /// An exchange in flight; see the concept pending_exchange.
  class pending {
   public:
    bool test() { return !held_ || comm_->test(held_.get()); }
    void wait() {
      if (held_) comm_->wait(held_.get());
    }

   private:
    friend any_communicator;
    /// The held communicator's, which is always the same one.
    void* of(const detail::communicator_ref& comm) {
      if (!held_) {
        held_ = comm.make_pending();
        comm_ = comm;
      }
      return held_.get();
    }
    detail::owned_object held_ = detail::no_object();
    std::optional<detail::communicator_ref> comm_;  // to test and to wait, for which it needs no communicator
  };
  template <class Space>
    requires(!device_space<Space>)
  void exchange(const Space&, std::span<const outgoing> out, std::span<const incoming> in) const {
    get().comm.exchange(out, in);
  }
  template <class Space>
    requires(!device_space<Space>)
  void post(const Space&, std::span<const outgoing> out, std::span<const incoming> in, pending& exchange) const {
    const auto& comm = get().comm;
    if (comm.can_post())
      comm.post(out, in, exchange.of(comm));
    else
      comm.exchange(out, in);
  }
  void reserve(std::size_t messages, std::size_t longest) const { get().comm.reserve(messages, longest); }
  void reserve(std::size_t messages, std::size_t longest, pending& exchange) const {
    const auto& comm = get().comm;
    if (comm.can_post()) comm.reserve(messages, longest, exchange.of(comm));
  }

  /// Memory that ranks share; see the concept shared_window.
  using memory = detail::any_window;
  /// See the concept shared_memory_communicator. @throws shared_memory_error  also where the held one cannot share any
  memory share(std::size_t bytes) const {
    const auto& comm = get().comm;
    if (!comm.can_share())
      throw shared_memory_error("adasum::any_communicator: the ranks of this communicator share no memory");
    return memory(comm.share(bytes), bytes);  // in which no rank uses the addresses of another
  }

 private:
  friend detail::own_sharing<any_communicator>;

  struct contents {
    template <class Comm>
    explicit contents(Comm one)
        : held(detail::own(std::move(one))),
          comm(detail::ref_to_communicator(where, *static_cast<const Comm*>(held.get()))),
          state(comm.state()),
          nodes(comm.nodes()) {
      nodes.resize(static_cast<std::size_t>(comm.size()));
    }

    detail::host_space where;
    detail::owned_object held;
    detail::communicator_ref comm;
    communicator_state state;  // with plans of its own, since the held one may have other handles
    std::vector<int> nodes;
  };

  contents& get() const {
    if (!held_)
      throw bad_input("adasum::any_communicator: this communicator is empty: it has no ranks to communicate with");
    return *held_;
  }

  std::shared_ptr<contents> held_;
};

/// @cond internal
template <>
struct detail::own_sharing<any_communicator> {
  static bool can_share(const any_communicator& comm) { return comm.get().comm.can_share(); }
};
/// @endcond

}  // namespace adasum
