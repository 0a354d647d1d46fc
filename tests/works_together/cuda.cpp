// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients in memory of a device, the emulated one, among threads with a stream each, and among processes of MPI.
#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <adasum/adasum.hpp>
#include <adasum/comm/any.hpp>
#include <adasum/comm/mpi.hpp>
#include <adasum/comm/nccl.hpp>
#include <adasum/comm/routed.hpp>
#include <adasum/exec/cuda.hpp>
#include <adasum/rules/multi_krum.hpp>

#include "abilities.hpp"
#include "check_findings.hpp"
#include "combination.hpp"
#include "near.hpp"
#include "support/device.hpp"
#include "support/nccl_group.hpp"
#include "support/ranks.hpp"

namespace test_of_works_together_cuda {

using namespace adasum;
using namespace adasum::test;

namespace {

const segments cut{40, 17, 33};

std::vector<std::vector<float>> gradients_for(int ranks) {
  return gradients_of_workers<float>(static_cast<std::size_t>(ranks), cut.total(), 5);
}
/// call(gradient on the device) on one rank, under a rule.
template <class Comm, class Rule, class Call>
void check_rank(const Comm& comm, const cuda_space& exec, const Rule& rule, const Call& call) {
  const auto gradients = gradients_for(comm.size());
  const device_array<float> gradient(gradients[static_cast<std::size_t>(comm.rank())]);
  call(gradient.all());
  exec.fence();
  check_near<float>(gradient.values(), gradients, rule, cut);
}
template <class Comm>
void check_plan(const Comm& comm) {
  const stream queue;
  const cuda_space exec(queue);
  check_rank(comm, exec, rules::adasum{}, [&](auto gradient) {
    auto plan = plan_allreduce<float>(exec, comm, cut);
    plan(gradient);
  });
}

template <scalar T>
void check_elements(element type, findings& found) {
  const stream queue;
  const cuda_space exec(queue);
  const auto gradients = gradients_of_workers<T>(3, cut.total(), 5);
  const auto arrays = on_device(gradients);
  const device_array<T> out(gradients[0]);
  adasum_tree(exec, spans_of(arrays), out.all(), cut);
  check_near<T>(out.values(), gradients, rules::adasum{}, cut);
  enqueue_adasum_tree(exec, spans_of(arrays), out.all(), cut);
  check_near<T>(out.values(), gradients, rules::adasum{}, cut);
  found.note("elements × spaces", to_string(type), "cuda_space", "right");
  found.note("calls × arguments", "enqueue_adasum_tree", "segments", "right");
  found.count("right", 2);
}

/// On ranks of NCCL: what calls that only enqueue take.
void check_enqueued_calls(findings& found) {
  const auto on_ranks_of_nccl = [&](std::string_view call, std::string_view argument, const auto& rule, const auto& run) {
    const auto ranks = on_nccl(4, [&](const nccl_communicator& comm, const cuda_space& exec) {
      check_rank(comm, exec, rule, [&](auto gradient) { run(exec, comm, gradient); });
      return 0;
    });
    for (const auto& rank : ranks) CHECK_MESSAGE(rank.value, rank.description());
    found.note("calls × arguments", call, argument, "right");
    found.count("right");
  };
  const rules::adasum adaptive;
  const schedules::recursive_halving halving;
  on_ranks_of_nccl("enqueue_adasum_allreduce", "segments", adaptive,
                   [](const auto& exec, const auto& comm, auto g) { enqueue_adasum_allreduce(exec, comm, g, cut); });
  on_ranks_of_nccl("enqueue_adasum_allreduce", "a schedule", adaptive, [&](const auto& exec, const auto& comm, auto g) {
    enqueue_adasum_allreduce(exec, comm, g, cut, halving, {.check_agreement = true});
  });
  on_ranks_of_nccl("plan_enqueued_allreduce", "segments", adaptive, [](const auto& exec, const auto& comm, auto g) {
    auto plan = plan_enqueued_allreduce<float>(exec, comm, cut);
    plan(g);
    exec.fence();
  });
  on_ranks_of_nccl("plan_enqueued_allreduce", "a schedule", adaptive, [&](const auto& exec, const auto& comm, auto g) {
    auto plan = plan_enqueued_allreduce<float>(exec, comm, cut, halving);
    plan(g);
    exec.fence();
  });
  on_ranks_of_nccl("plan_enqueued_allreduce", "another rule", rules::mean{}, [](const auto& exec, const auto& comm, auto g) {
    auto plan = plan_enqueued_allreduce<float>(exec, comm, cut, rules::mean{});
    plan(g);
    exec.fence();
  });

  // Options that need the host.
  const auto refused = [&](std::string_view option, const options& choices) {
    const auto ranks = on_nccl(2, [&](const nccl_communicator& comm, const cuda_space& exec) {
      plan_enqueued_allreduce<float>(exec, comm, cut, choices);
      return 0;
    });
    constexpr std::string_view words = "options::nonfinite and options::wire are for plan_allreduce, whose host waits";
    for (const auto& rank : ranks)
      CHECK(rank.message_of<bad_input>().value_or("").find(words) != std::string::npos);
    found.note("calls × options", "plan_enqueued_allreduce", option, "call: " + std::string(words));
    found.count("refused, call: " + std::string(words));
  };
  refused("nonfinite", {.check_agreement = false, .nonfinite = nonfinite_policy::raise});
  refused("wire", {.check_agreement = false, .wire = wire_format::bfloat16});
  // Ranks that disagree are told, where they compare.
  const auto ranks = on_nccl(2, [&](const nccl_communicator& comm, const cuda_space& exec) {
    plan_enqueued_allreduce<float>(exec, comm, comm.rank() == 0 ? 90 : 91, {.check_agreement = true});
    return 0;
  });
  for (const auto& rank : ranks) CHECK(rank.threw<agreement_error>());
  found.note("calls × options", "plan_enqueued_allreduce", "check_agreement", "right");
}

void check_options(findings& found) {
  const auto note = [&](std::string_view option, std::string_view word) {
    found.note("options × spaces", option, "cuda_space", word);
    found.count("right");
  };
  results_of(on_ranks(3, [](const thread_communicator& comm) {
    const stream queue;
    const cuda_space exec(queue);
    auto gradients = gradients_for(3);
    gradients[1][3] = infinity<float>();
    const device_array<float> gradient(gradients[static_cast<std::size_t>(comm.rank())]);
    const auto found = combine_allreduce(exec, comm, gradient.all(), cut, rules::mean{},
                                         {.nonfinite = nonfinite_policy::exclude, .wire = wire_format::bfloat16});
    CHECK(found.excluded() == std::vector{1});
    CHECK(found.wire() == wire_format::bfloat16);
    CHECK_FALSE(found.lost_on_wire().has_value());
    return 0;
  }));
  note("nonfinite", "right");
  note("wire", "right");
  note("lost_on_wire()", "not counted");
}

}  // namespace

TEST_CASE("works together: CUDA") {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  findings found;
  const std::string_view space = "cuda_space";
  check_plan(mpi_communicator(MPI_COMM_WORLD));
  note_abilities<mpi_communicator, cuda_space>(found, "mpi_communicator", space, true);
  if (rank > 0) return;

  check_elements<float>(element::of_float, found);
  check_elements<double>(element::of_double, found);
  check_elements<__half>(element::of_half, found);
  check_elements<__nv_bfloat16>(element::of_bfloat16, found);
  check_enqueued_calls(found);
  check_options(found);

  check_plan(self_communicator{});
  note_abilities<self_communicator, cuda_space>(found, "self_communicator", space, true);
  results_of(on_ranks(3, [](const auto& comm) { return check_plan(comm), 0; }));
  note_abilities<thread_communicator, cuda_space>(found, "thread_communicator", space, true);
  for (const auto& one : on_nccl(3, [](const auto& comm, const cuda_space&) { return check_plan(comm), 0; }))
    CHECK_MESSAGE(one.value, one.description());
  note_abilities<nccl_communicator, cuda_space>(found, "nccl_communicator", space, true);
  note_abilities<any_communicator, cuda_space>(found, "any_communicator", space, false);
  using routed = routed_communicator<nccl_communicator, thread_communicator>;
  const nccl_group first(2), second(2);
  const auto across = thread_communicator::group(4);
  std::vector<routed> ranks;
  for (std::size_t r = 0; r < 4; ++r)
    ranks.emplace_back(nccl_communicator(r < 2 ? first[r] : second[r - 2]), across[r], std::vector<int>{0, 0, 1, 1});
  results_of(on_each(std::move(ranks), [](const routed& comm) { return check_plan(comm), 0; }));
  note_abilities<routed, cuda_space>(found, "routed_communicator", space, true);
  note_abilities<nccl_communicator, serial_space>(found, "nccl_communicator", "serial_space", false);
  note_abilities<nccl_communicator, threads_space>(found, "nccl_communicator", "threads_space", false);
  found.count("right", 5);
  check_findings(found, "cuda");
}

}  // namespace test_of_works_together_cuda
