// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "core/config.hpp"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "core/concepts.hpp"
#include "core/node_groups.hpp"
#include "detail/engine/call_signature.hpp"
#include "detail/engine/collective_setup.hpp"
#include "detail/engine/lasting_exchanges.hpp"
#include "detail/engine/machine_times.hpp"
#include "plan.hpp"
#include "schedules/machine.hpp"
#include "schedules/shared_memory.hpp"

namespace adasum {
namespace detail {

/// Between nodes, messages longer than this are not timed: the caches make no difference there.
inline constexpr std::size_t longest_across = schedules::rate::lengths[1];

/// Where ranks share memory: reductions there, of gradients that are copied. Collective.
/// @param gradient  of the longest length
template <std::floating_point T, class Space, class Comm, class Exchanges>
void time_in_place(Exchanges& exchanges, const Space& space, const Comm& comm, std::span<T> gradient,
                   machine_times& found) {
  constexpr std::size_t rounds = 15, short_runs = 8;
  const auto seconds_of = [&](std::size_t length, std::size_t runs) {
    auto plan = plan_allreduce<T>(space, comm, segments::whole(length), schedules::automatic{},
                                  options{.check_agreement = false});
    double seconds = 0;
    if (plan.last_report().schedule() != schedules::shared_memory::name) return seconds;  // the same on all ranks
    // A rank on which a run fails leaves this plan, and makes the next one with the others.
    exchanges.attempt_alone([&] {
      seconds = least_of<rounds>([&] {
        const double start = seconds_now();
        for (std::size_t i = 0; i < runs; ++i) plan(gradient.first(length));
        return (seconds_now() - start) / static_cast<double>(runs);
      });
    });
    return std::max(seconds, 1e-9);  // there was a plan
  };
  found.barrier = seconds_of(std::min(machine_times::short_length, gradient.size()), short_runs);
  if (found.barrier == 0) return;
  for (std::size_t i = 0; i < found.in_place.size(); ++i)
    if (const auto length = schedules::rate::lengths[i] / sizeof(T); length <= gradient.size())
      found.in_place[i] = seconds_of(length, i == 0 ? 4 : 1);
}

/// Messages inside and between nodes, and pairs whose gradients have just arrived. Collective.
/// @param mates           this rank's node
/// @param first_of_nodes  one rank of each node
/// @param from, to        at least `longest` bytes
template <class T, class Space, class Comm, class Exchanges>
void time_messages(Exchanges& exchanges, const Space& space, const Comm& comm, const std::vector<int>& mates,
                   const std::vector<int>& first_of_nodes, T* from, T* to, std::size_t longest, machine_times& found) {
  // All ranks of a node at once, as in a reduction; then one rank of each node, so that each has its link for itself.
  const auto across = std::min(longest, longest_across);
  auto* const bytes_out = reinterpret_cast<std::byte*>(from);
  auto* const bytes_in = reinterpret_cast<std::byte*>(to);
  found.inside = time_ring(exchanges, mates, comm.rank(), bytes_out, bytes_in, longest);
  found.across = time_ring(exchanges, first_of_nodes, comm.rank(), bytes_out, bytes_in, across);
  const bool mates_exist = first_of_nodes.size() < static_cast<std::size_t>(comm.size());  // of any rank
  const auto& ring = mates_exist ? mates : first_of_nodes;  // of ranks that all take part
  const auto pairs = time_pairs(exchanges, space, ring, comm.rank(), from, to, mates_exist ? longest : across);
  for (std::size_t i = 0; i < pairs.size(); ++i)
    found.kernels[i].pair_element = std::max(found.kernels[i].pair_element, pairs[i]);
}

}  // namespace detail

/// The constants of schedules::machine on this machine, for schedules::automatic{.on = …}: of the messages between nodes and
/// inside them (mpi_communicator knows its nodes; ranks of a communicator without nodes() are taken for ranks of one), of
/// memory that ranks share, where all of them do, and of the execution space's kernels.
///
///     const auto machine = adasum::measure_machine(exec, comm);
///     auto plan = adasum::plan_allreduce<float>(exec, comm, segments, adasum::schedules::automatic{.on = machine});
///
/// Collective, and waits for all ranks. Every rank gets the same constants, those that rank 0 computes from the slowest rank's
/// times. It makes a fixed number of exchanges: some 1,000 inside nodes and as many across, where each rank sends 20 MiB.
/// That takes a tenth of a second to a second; more over links of less than 1 Gb/s. Other work on the machine meanwhile
/// spoils what is measured. A machine holds for communicators whose ranks lie on nodes like those of this one.
/// @tparam T  elements of the gradients
/// @param most_bytes  lengths that come to more than this on all ranks together are not timed, except 256 KiB; their times
///                    are extrapolated
/// @throws agreement_error      another rank failed before anything was sent, or does something else
/// @throws communication_error  another rank failed later. No rank waits for it
template <std::floating_point T = float, class Space, class Comm>
  requires execution_space<Space, T> && communicator_for<Comm, Space>
schedules::machine measure_machine(const Space& space, const Comm& comm,
                                   std::size_t most_bytes = std::size_t{256} << 20) {
  constexpr auto call = "adasum::measure_machine";
  using buffer_type = decltype(detail::allocate_ones<T>(space, 0));
  struct sent_and_received {
    std::optional<buffer_type> from{}, to{};
    std::vector<detail::block_of<detail::machine_times>> times{};
    std::vector<detail::block_of<schedules::machine>> machines{};
  };
  const auto ranks = static_cast<std::size_t>(comm.size());
  std::size_t longest = 0;  // message or gradient
  for (const auto bytes : schedules::rate::lengths)
    if (longest == 0 || bytes * ranks <= most_bytes) longest = bytes;
  const auto among = detail::ref_to_communicator(space, comm);
  detail::leak_if_in_flight<sent_and_received> kept(among);
  auto& from = kept.memory.from;
  auto& to = kept.memory.to;
  auto& times = kept.memory.times;
  auto& machines = kept.memory.machines;
  detail::machine_times mine;
  std::optional<detail::lasting_exchanges> exchanges;
  std::vector<int> mates, first_of_nodes;

  // Whatever one rank alone may fail at comes first, so that the others can be told.
  detail::collective_setup(call, among, true).run([&](auto& together) {
    from = detail::allocate_ones<T>(space, 2 * longest / sizeof(T));
    for (std::size_t i = 0; i < schedules::rate::lengths.size(); ++i)
      if (const auto bytes = schedules::rate::lengths[i]; bytes <= longest)
        mine.kernels[i] = detail::measure_kernels<T>(space, from->data(), bytes / sizeof(T));
    if (ranks == 1) return;
    exchanges.emplace(among, detail::timed_together);
    to = detail::allocate_ones<T>(space, longest / sizeof(T));
    auto nodes = among.nodes();
    if (nodes.empty()) nodes.resize(ranks);
    const node_groups groups(nodes);
    for (const int mate : groups.ranks(groups.find(comm.rank()).node)) mates.push_back(mate);
    for (std::size_t node = 0; node < groups.size(); ++node) first_of_nodes.push_back(groups.ranks(node).front());
    times.resize(ranks);
    machines.resize(ranks);
    among.reserve(detail::timed_together, longest);
    detail::call_signature signature;
    signature.set(signature.activity, "measuring the machine");
    signature.set(signature.space, space.name);
    signature.set(signature.scalar, to_string(format_of<T>));
    signature.length = longest;
    together.meet(signature);
  });
  if (ranks == 1) return detail::machine_from(mine, 1, sizeof(T));

  if constexpr (detail::shares_gradients<Comm, Space> && !device_space<Space>)
    detail::time_in_place<T>(*exchanges, space, comm, std::span<T>(to->data(), longest / sizeof(T)), mine);

  detail::time_messages(*exchanges, space, comm, mates, first_of_nodes, from->data(), to->data(), longest, mine);
  std::optional<detail::block_of<schedules::machine>> answer;
  if (exchanges->gather(std::optional(detail::block_of<detail::machine_times>{0, mine}), times)) {
    for (const auto& one : times) mine.take_slower(one.value);
    answer.emplace();
    if (comm.rank() == 0) answer->value = detail::machine_from(mine, comm.size(), sizeof(T));
  }
  return exchanges->of_first(answer, machines, call).value;
}

}  // namespace adasum
