// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <adasum/core/config.hpp>

#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <adasum/core/communicator_state.hpp>
#include <adasum/core/concepts.hpp>
#include <adasum/core/error.hpp>
#include <adasum/core/message.hpp>
#include <adasum/core/waiting.hpp>
#include <adasum/detail/references/shared_window_ref.hpp>
#include "c10d/device_messages.hpp"
#include "c10d/error.hpp"  // IWYU pragma: export
#include "c10d/messages.hpp"
#include "c10d/node_memory.hpp"
#include "c10d/notes.hpp"
#include "c10d/worker.hpp"

namespace adasum {

/// The ranks of one of PyTorch's process groups: gloo, MPI, UCC, or whatever sends tensors of the CPU from rank to rank.
///
///     const adasum::c10d_communicator ranks(group);
///     adasum::adasum_allreduce(adasum::serial_space{}, ranks, adasum::elements<float>(tensor), segments);
///
/// Messages are ProcessGroup::send and recv, with the tags 24301 to 24303, which the program should not use itself on
/// this group. All ranks make the same calls in the same order, from one thread at a time; collectives of the group may
/// run meanwhile, as DistributedDataParallel's do. The group's own timeout limits how long a rank waits for a message.
/// Ranks of one host share memory (in files of /dev/shm, where there is room), and need no messages while they work
/// there.
///
/// After a failure of the group, which is a c10d_error, this communicator is of no use, and every call throws at once.
///
/// Gradients on a device are combined by aten_space. Most backends send either tensors of the CPU or those of a device, so
/// there may be two groups of the same ranks: one for what ranks tell each other, such as Gram matrices, and one, such as
/// NCCL's, for gradients. Its messages go from device to device, on the current stream, which the host does not wait for.
/// Without the second group, they are copied to the host.
///
/// A default-constructed communicator, one made from a null pointer, and one that was moved from are empty: they can be
/// copied, assigned to, and tested (`if (comm)`); anything else throws bad_input.
class c10d_communicator {
 private:
  struct contents;

 public:
  /// An empty communicator.
  c10d_communicator() = default;

  /// Collective over the group's ranks, which tell each other the names of their hosts; blocks until they have.
  /// @param timeout  how long a rank waits at the most for another that is to come to a reduction in shared memory; the
  ///                 default is as long as groups wait for messages unless they are told otherwise
  /// @param for_devices  a group of the same ranks, in the same order, that sends tensors of devices; null if there is none.
  ///                     All its ranks must have communicated once (NCCL connects them at the first call).
  /// @throws c10d_error  the group failed
  /// @throws bad_input  a timeout that is not positive, or groups of different ranks
  explicit c10d_communicator(c10::intrusive_ptr<::c10d::ProcessGroup> group,
                             std::chrono::duration<double> timeout = std::chrono::minutes(30),
                             const c10::intrusive_ptr<::c10d::ProcessGroup>& for_devices = {}) {
    detail::require_timeout(timeout, "adasum::c10d_communicator");
    if (!group) return;
    if (for_devices && (for_devices->getRank() != group->getRank() || for_devices->getSize() != group->getSize()))
      throw bad_input("adasum::c10d_communicator: the group for devices must have the same ranks, in the same order");
    held_ = std::make_shared<contents>(std::move(group), timeout, for_devices);
  }

  /// Whether this communicator has ranks, that is, is not empty.
  explicit operator bool() const noexcept { return held_ != nullptr; }

  /// The number of this rank, from 0.
  int rank() const { return get().rank; }
  /// How many ranks there are.
  int size() const { return get().size; }
  /// Null if this communicator is empty.
  c10::intrusive_ptr<::c10d::ProcessGroup> native() const {
    return held_ ? held_->group : c10::intrusive_ptr<::c10d::ProcessGroup>();
  }

  /// Whether the group has failed, plans of single calls (which are destroyed with the last copy of this object), and more; see
  /// the concept communicator_for. Another object that was made from the same group has one of its own, and so does not know of
  /// a plan that is in flight here.
  communicator_state& state() const { return get().of_handles; }
  /// The node of each rank, which is the lowest rank of a host with the same name.
  const std::vector<int>& nodes() const { return get().nodes; }

  /// Memory that the ranks of one host share; see the concept shared_window. A rank drops it when it likes.
  class memory {
   public:
    static constexpr bool same_address_space = false;
    std::span<const int> ranks() const { return memory_->ranks(); }
    std::byte* of(std::size_t index) const { return memory_->of(index); }
    bool has_left(std::size_t index) const { return memory_->has_left(index); }

   private:
    friend c10d_communicator;
    explicit memory(std::shared_ptr<const detail::c10d::node_memory> of_node) : memory_(std::move(of_node)) {}
    std::shared_ptr<const detail::c10d::node_memory> memory_;
  };

  /// Memory of so many bytes for each rank. Collective; blocks until all ranks have it.
  /// @throws shared_memory_error  on all ranks: on one host there is too little room in /dev/shm, or its ranks, in containers
  ///                              of their own, do not see each other's files there
  memory share(std::size_t bytes) const {
    auto& here = get();
    return memory(detail::c10d::node_memory::make(here.nodes, here.rank, bytes, here.exchanges, here.memory_notes));
  }

  /// Blocks until every message has been sent and received. See the concept communicator_for.
  template <class Space>
    requires(!device_space<Space>)
  void exchange(const Space&, std::span<const outgoing> out, std::span<const incoming> in) const {
    get().exchanges.exchange(out, in);
  }
  /// The same, where a device_space works on PyTorch's current stream, and its device() is PyTorch's. Messages of the device
  /// are only started, in the order of that stream.
  template <device_space Space>
    requires requires(const Space& space) {
      { space.device() } -> std::same_as<at::Device>;
    }
  void exchange(const Space& space, std::span<const outgoing> out, std::span<const incoming> in) const {
    get().of_devices.exchange(space, out, in);
  }

  /// An exchange in flight; see the concept pending_exchange. A thread of the communicator's carries it out.
  class pending {
   public:
    bool test() {
      const auto here = held_;
      return !here || ended([&] { return here->background->test(); });
    }
    void wait() {
      if (const auto here = held_) ended([&] { return here->background->wait(), true; });
    }

   private:
    friend c10d_communicator;
    /// One that throws has ended, too.
    template <class Ask>
    bool ended(const Ask& ask) {
      try {
        if (!ask()) return false;
      } catch (...) {
        held_.reset();
        throw;
      }
      held_.reset();
      return true;
    }
    std::vector<outgoing> out_;
    std::vector<incoming> in_;
    std::shared_ptr<c10d_communicator::contents> held_;
  };

  /// The same without blocking. See the concept posting_communicator.
  template <class Space>
    requires(!device_space<Space>)
  void post(const Space&, std::span<const outgoing> out, std::span<const incoming> in, pending& exchange) const {
    auto& here = get();
    exchange.out_.assign(out.begin(), out.end());
    exchange.in_.assign(in.begin(), in.end());
    if (!here.background) here.background.emplace();
    here.background->start([&here, &exchange] { here.exchanges.exchange(exchange.out_, exchange.in_); });
    exchange.held_ = held_;
  }

 private:
  struct contents {
    contents(c10::intrusive_ptr<::c10d::ProcessGroup> of_group, std::chrono::duration<double> longest,
             const c10::intrusive_ptr<::c10d::ProcessGroup>& for_devices)
        : group(std::move(of_group)),
          rank(group->getRank()),
          size(group->getSize()),
          exchanges(group, of_handles),
          of_devices(exchanges, for_devices, for_devices == group),
          memory_notes(rank, size) {
      of_handles.set_timeout(longest);
      find_nodes();
    }

    void find_nodes() {
      detail::c10d::notes<std::array<char, 256>> names(rank, size);
      gethostname(names.own().data(), names.own().size() - 1);
      const auto& hosts = names.tell(exchanges);
      for (const auto& host : hosts) nodes.push_back(static_cast<int>(std::ranges::find(hosts, host) - hosts.begin()));
    }

    c10::intrusive_ptr<::c10d::ProcessGroup> group;
    int rank, size;
    communicator_state of_handles;
    detail::c10d::messages exchanges;
    detail::c10d::device_messages of_devices;
    detail::c10d::notes<detail::c10d::node_memory::note> memory_notes;
    std::vector<int> nodes;
    std::optional<detail::c10d::worker> background;  // from the first post on
  };

  contents& get() const {
    if (!held_)
      throw bad_input("adasum::c10d_communicator: this communicator is empty: it has no ranks to communicate with");
    return *held_;
  }

  std::shared_ptr<contents> held_;
};

/// @cond internal
template <>
struct detail::own_memory<c10d_communicator::memory> : memory_defaults {
  /// Threads that compute the next gradients meanwhile need the processor.
  static void rest(const c10d_communicator::memory&) { std::this_thread::sleep_for(std::chrono::microseconds(20)); }
};
/// @endcond

}  // namespace adasum
