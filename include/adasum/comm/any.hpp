// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "../core/concepts.hpp"
#include "../core/error.hpp"
#include "../core/kept_plans.hpp"
#include "../core/message.hpp"
#include "../core/optional_members.hpp"
#include "../detail/references/shared_window_ref.hpp"
#include "any/messages.hpp"

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
  explicit any_communicator(Comm comm)
      : held_(std::make_shared<holder<Comm>>(std::move(comm))), kept_plans_(std::make_shared<adasum::kept_plans>()) {}

  /// Whether this communicator has ranks, that is, is not empty.
  explicit operator bool() const noexcept { return held_ != nullptr; }

  /// The number of this rank, from 0.
  int rank() const { return get().rank(); }
  /// How many ranks there are.
  int size() const { return get().size(); }
  bool& reduction_in_flight() const { return get().reduction_in_flight(); }
  bool gave_up() const { return held_ && held_->gave_up(); }
  void require_usable(const char* call) const { get().require_usable(call); }
  /// The node of each rank: one node for all where the held one does not know.
  std::span<const int> nodes() const { return get().nodes(); }

  adasum::kept_plans* kept_plans() const { return kept_plans_.get(); }
  any_communicator without_kept_plans() const {
    auto copy = *this;
    copy.kept_plans_.reset();
    return copy;
  }

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
  bool all_share_memory() const { return get().all_share_memory(); }

 private:
  struct methods {
    virtual ~methods() = default;
    virtual int rank() const = 0;
    virtual int size() const = 0;
    virtual bool& reduction_in_flight() = 0;
    virtual bool gave_up() const = 0;
    virtual void require_usable(const char* call) const = 0;
    virtual std::span<const int> nodes() const = 0;
    virtual void exchange(std::span<const outgoing> out, std::span<const incoming> in) = 0;
    virtual void post(std::span<const outgoing> out, std::span<const incoming> in, pending& exchange) = 0;
    virtual void reserve(std::size_t messages, std::size_t longest, pending* exchange) = 0;
    virtual memory share(std::size_t bytes) = 0;
    virtual bool all_share_memory() const = 0;
  };

  template <class Comm>
  struct holder final : methods {
    explicit holder(Comm comm) : held(std::move(comm)) {
      if constexpr (requires { std::span<const int>(held.nodes()); }) {
        const std::span<const int> nodes(held.nodes());
        node_of_rank.assign(nodes.begin(), nodes.end());
      } else {
        node_of_rank.resize(static_cast<std::size_t>(held.size()));
      }
    }
    int rank() const override { return held.rank(); }
    int size() const override { return held.size(); }
    bool& reduction_in_flight() override {
      if constexpr (requires {
                      { held.reduction_in_flight() } -> std::same_as<bool&>;
                    })
        return held.reduction_in_flight();
      else
        return in_flight;
    }
    bool gave_up() const override { return detail::gave_up(held); }
    void require_usable(const char* call) const override {
      if constexpr (requires { held.require_usable(call); }) held.require_usable(call);
    }
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
    bool all_share_memory() const override {
      if constexpr (requires { held.all_share_memory(); })
        return held.all_share_memory();
      else
        return shared_memory_communicator<Comm>;
    }
    Comm held;
    bool in_flight = false;
    std::vector<int> node_of_rank;
  };

  methods& get() const {
    if (!held_)
      throw bad_input("adasum::any_communicator: this communicator is empty: it has no ranks to communicate with");
    return *held_;
  }

  std::shared_ptr<methods> held_;
  std::shared_ptr<adasum::kept_plans> kept_plans_;
};

}  // namespace adasum
