// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include "mpi_h.hpp"

#include <cstddef>
#include <memory>
#include <span>

#include "../../core/communicator_state.hpp"
#include "../../core/message.hpp"
#include "device_exchange.hpp"
#include "handle.hpp"
#include "node_memory.hpp"
#include "pending.hpp"
#include "waiting.hpp"

namespace adasum::detail::mpi {

/// What the copies of an mpi_communicator share.
struct state {
  /// What can run out of memory comes first, so that no rank waits in vain. An exchange of one short message each way,
  /// by which a rank says that it ran out later, allocates nothing.
  state(MPI_Comm original, std::size_t limit, const detail::permitted_thread& only)
      : blocking(short_message / limit + 1, short_message / limit + 1),
        node(std::make_shared<mpi::node>(size_of(original))),
        wait(rank_in(original), node->node_of_rank(), of_handles),
        comm(communicator_handle::duplicate(original)),
        piece_limit(limit) {
    of_handles.permit(only);
    node->find(comm);
  }

  /// Where messages may still be in flight, what they use stays for good, and the communicator with it.
  static void destroy(state* all) {
    if (all->of_handles.gave_up()) return;
    all->of_handles.plans().clear();  // while all that they use is there
    delete all;
  }

  void reserve(std::size_t count, std::size_t longest, pending_messages& messages) const {
    const auto pieces = count * (longest / piece_limit + 1);
    messages.reserve(pieces, pieces);
  }

  /// Receives first: what arrives then finds its buffer. @throws std::bad_alloc  nothing has been posted
  void post(std::span<const outgoing> out, std::span<const incoming> in, pending_messages& messages) {
    wait.require_not_given_up();
    const auto pieces = [&](const auto& all) {
      std::size_t count = 0;
      for (const auto& message : all) count += message.bytes.size() / piece_limit + 1;
      return count;
    };
    messages.reserve(pieces(in), pieces(out));
    messages.begin(comm.get(), comm.rank(), wait);
    for (const auto& message : in) messages.receive(message.peer, message.bytes, piece_limit);
    for (const auto& message : out) messages.send(message.peer, message.bytes, piece_limit, message.withheld);
  }

  static constexpr std::size_t short_message = 64;  // bytes

  communicator_state of_handles;
  pending_messages blocking;  // the messages of exchange(), kept for their memory
  std::shared_ptr<mpi::node> node;
  waiting wait;
  communicator_handle comm;
  std::size_t piece_limit;
  bool stages = true;  // whether elements of devices go through the host
  device_buffers buffers;
};

}  // namespace adasum::detail::mpi
