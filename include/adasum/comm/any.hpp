// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "../core/communicator_state.hpp"
#include "../core/concepts.hpp"
#include "../core/error.hpp"
#include "../core/message.hpp"
#include "../core/optional_members.hpp"
#include "../detail/references/shared_window_ref.hpp"

namespace adasum::detail::any {

/// What communicators are told of the memory of messages: it is that of the host.
struct host {};

/// An exchange in flight on a communicator of any type. It keeps the other's object, and with it its memory.
class pending {
 public:
  bool test() { return !held_ || held_->test(); }
  void wait() {
    if (held_) held_->wait();
  }

  /// That of a communicator, which is always the same one.
  template <class Comm>
  typename Comm::pending& of() {
    if (!held_) held_ = std::make_unique<holder<typename Comm::pending>>();
    return static_cast<holder<typename Comm::pending>&>(*held_).held;
  }

 private:
  struct methods {
    virtual ~methods() = default;
    virtual bool test() = 0;
    virtual void wait() = 0;
  };
  template <class Pending>
  struct holder final : methods {
    bool test() override { return held.test(); }
    void wait() override { held.wait(); }
    Pending held;
  };
  std::unique_ptr<methods> held_;
};

}  // namespace adasum::detail::any

namespace adasum {

/// Any communicator for gradients in memory of the host, chosen at run time: what is compiled for this one serves all of
/// them. It does what the one that it holds does, at the price of a virtual call for each exchange.
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
    requires(!std::same_as<Comm, any_communicator> && communicator_for<Comm, detail::any::host>)
  explicit any_communicator(Comm comm) : held_(std::make_shared<holder<Comm>>(std::move(comm))) {}

  /// Whether this communicator has ranks, that is, is not empty.
  explicit operator bool() const noexcept { return held_ != nullptr; }

  /// The number of this rank, from 0.
  int rank() const { return get().rank(); }
  /// How many ranks there are.
  int size() const { return get().size(); }
  communicator_state& state() const { return get().state(); }
  /// The node of each rank: one node for all where the held one does not know.
  std::span<const int> nodes() const { return get().nodes(); }

  /// An exchange in flight; see the concept pending_exchange.
  using pending = detail::any::pending;
  template <class Space>
    requires(!device_space<Space>)
  void exchange(const Space&, std::span<const outgoing> out, std::span<const incoming> in) const {
    get().exchange(out, in);
  }
  template <class Space>
    requires(!device_space<Space>)
  void post(const Space&, std::span<const outgoing> out, std::span<const incoming> in, pending& exchange) const {
    get().post(out, in, exchange);
  }
  void reserve(std::size_t messages, std::size_t longest) const { get().reserve(messages, longest, nullptr); }
  void reserve(std::size_t messages, std::size_t longest, pending& exchange) const {
    get().reserve(messages, longest, &exchange);
  }

  /// Memory that ranks share; see the concept shared_window.
  using memory = detail::any_window;
  /// See the concept shared_memory_communicator. @throws shared_memory_error  also where the held one cannot share any
  memory share(std::size_t bytes) const { return get().share(bytes); }

 private:
  friend detail::own_sharing<any_communicator>;

  struct methods {
    virtual ~methods() = default;
    virtual int rank() const = 0;
    virtual int size() const = 0;
    virtual communicator_state& state() = 0;
    virtual std::span<const int> nodes() const = 0;
    virtual void exchange(std::span<const outgoing> out, std::span<const incoming> in) = 0;
    virtual void post(std::span<const outgoing> out, std::span<const incoming> in, pending& exchange) = 0;
    virtual void reserve(std::size_t messages, std::size_t longest, pending* exchange) = 0;
    virtual memory share(std::size_t bytes) = 0;
    virtual bool can_share() const = 0;
  };

  template <class Comm>
  struct holder final : methods {
    explicit holder(Comm comm) : held(std::move(comm)), own_state(detail::state_of(held)) {
      if constexpr (detail::says_nodes<Comm>) {
        const auto& found = held.nodes();
        const std::span<const int> nodes(found);
        node_of_rank.assign(nodes.begin(), nodes.end());
      } else {
        node_of_rank.resize(static_cast<std::size_t>(held.size()));
      }
    }
    int rank() const override { return held.rank(); }
    int size() const override { return held.size(); }
    communicator_state& state() override { return own_state; }
    std::span<const int> nodes() const override { return node_of_rank; }
    void exchange(std::span<const outgoing> out, std::span<const incoming> in) override {
      held.exchange(detail::any::host{}, out, in);
    }
    void post(std::span<const outgoing> out, std::span<const incoming> in, pending& exchange) override {
      if constexpr (posting_communicator<Comm, detail::any::host>)
        held.post(detail::any::host{}, out, in, exchange.template of<Comm>());
      else
        held.exchange(detail::any::host{}, out, in);
    }
    void reserve(std::size_t messages, std::size_t longest, pending* exchange) override {
      if (!exchange) {
        if constexpr (requires { held.reserve(messages, longest); }) held.reserve(messages, longest);
      } else if constexpr (posting_communicator<Comm, detail::any::host>) {
        auto& own = exchange->template of<Comm>();
        if constexpr (requires { held.reserve(messages, longest, own); }) held.reserve(messages, longest, own);
      }
    }
    memory share(std::size_t bytes) override {
      if constexpr (shared_memory_communicator<Comm>)
        return memory(held.share(bytes), bytes);
      else
        throw shared_memory_error("adasum::any_communicator: the ranks of this communicator share no memory");
    }
    bool can_share() const override {
      if constexpr (shared_memory_communicator<Comm>)
        return detail::own_sharing<Comm>::can_share(held);
      else
        return false;
    }
    Comm held;
    communicator_state own_state;  // with plans of its own, since the held one may have other handles
    std::vector<int> node_of_rank;
  };

  methods& get() const {
    if (!held_)
      throw bad_input("adasum::any_communicator: this communicator is empty: it has no ranks to communicate with");
    return *held_;
  }

  std::shared_ptr<methods> held_;
};

/// @cond internal
template <>
struct detail::own_sharing<any_communicator> {
  static bool can_share(const any_communicator& comm) { return comm.get().can_share(); }
};
/// @endcond

}  // namespace adasum
