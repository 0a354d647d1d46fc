// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <cstddef>
#include <vector>

#include <adasum/adasum.hpp>
#include <adasum/machine_file.hpp>
#include <adasum/measure_machine.hpp>
#include <adasum/rules/named.hpp>
#ifdef ADASUM_TEST_MPI
#include <adasum/mpi.hpp>
#endif
#include <adasum/testing.hpp>

/// The public calls, for tools that look at templates only where they are used.

namespace {

/// Calls of this process alone.
template <class Space>
float combine_all(const Space& exec, const adasum::segments& segs) {
  std::vector<float> gradient(segs.total(), 1), other(segs.total(), 2), both(segs.total());
  adasum::adasum_pair(exec, gradient, other, both, segs);
  const std::vector<std::vector<float>> several{gradient, other, both};
  adasum::adasum_tree(exec, several, both, segs);
  adasum::adasum_tree_by_node(exec, several, adasum::node_groups(std::vector<int>{0, 1, 0}), both, segs);
  const auto combine = [&](auto... rules) { (adasum::combine(exec, several, both, rules, segs), ...); };
  combine(adasum::rules::adacons{}, adasum::rules::adasum_linear{}, adasum::rules::centred_clipping{},
          adasum::rules::geometric_median{}, adasum::rules::gradient_agreement_filtering{}, adasum::rules::gradvac{},
          adasum::rules::mean{}, adasum::rules::multi_krum{},
          adasum::rules::nearest_neighbour_mixing<adasum::rules::mean>{}, adasum::rules::pcgrad{}, adasum::rules::sum{},
          adasum::rules::unit_mean{});
  auto named = adasum::rules::named("geometric_median:smoothing=0.1");
  adasum::combine(exec, several, both, named, segs);
  auto total = adasum::plan_accumulator<float>(exec, segs);
  for (const auto& one : several) total.add(one);
  return both.front() + total.gradient().front();
}

template <class Comm>
float reduce(const Comm& comm) {
  const adasum::serial_space exec;
  const adasum::segments segs{6, 0, 4};
  std::vector<float> gradient(segs.total(), 1);

  const auto called = adasum::adasum_allreduce(exec, comm, gradient, segs);
  adasum::combine_allreduce(exec, comm, gradient, adasum::rules::adacons{}, segs, adasum::schedules::all_to_all{},
                            {.nonfinite = adasum::nonfinite_policy::exclude, .wire = adasum::wire_format::bfloat16});
  adasum::adasum_allreduce(exec, comm, gradient, segs, adasum::shard{.replica = comm.rank()});
  adasum::adasum_allreduce(adasum::threads_space(2), comm, gradient, segs);
  const std::vector<int> nodes(static_cast<std::size_t>(comm.size()), 0);
  adasum::adasum_allreduce(exec, comm, gradient, segs, adasum::schedules::hierarchical{nodes, adasum::rules::mean{}});
  adasum::adasum_reduce_scatter(exec, comm, gradient, segs, adasum::schedules::recursive_doubling{});
  adasum::combine_reduce_scatter(exec, comm, gradient, adasum::rules::mean{}, segs);

  auto plan = adasum::plan_allreduce<float>(exec, comm, segs);
  plan(gradient);
  plan.start(gradient);
  plan.test();
  plan.wait();
  const std::vector<float> before(segs.total(), 3);
  adasum::delta_allreduce(plan, before, gradient);
  auto part = adasum::plan_reduce_scatter<float>(exec, comm, segs);
  part(gradient);

  auto buckets = adasum::plan_bucketed<float>(exec, comm, segs, 20);
  for (std::size_t i = 0; i < segs.size(); ++i) buckets.ready(i);
  buckets.wait();
  adasum::write_machine(adasum::measure_machine(exec, comm, 1 << 16), "machine");
  const auto machine = adasum::read_machine(exec, comm, "machine");
  adasum::machine_from_environment(exec, comm);
  adasum::adasum_allreduce(exec, comm, gradient, segs, adasum::schedules::automatic{.on = machine});
  adasum::check_communicator(comm, exec);
  return gradient.front() + static_cast<float>(called.orthogonality());
}

}  // namespace

int main() {
  const adasum::segments segs{6, 0, 4};
  float sum = combine_all(adasum::serial_space{}, segs) + combine_all(adasum::threads_space(2), segs);
  for (const auto& comm : adasum::thread_communicator::group(2)) sum += reduce(comm);
  adasum::simulate(2, {}, [&](const auto& comm) { sum += reduce(comm); });
#ifdef ADASUM_TEST_MPI
  sum += reduce(adasum::mpi_communicator(MPI_COMM_WORLD));
#endif
  return sum > 0 ? 0 : 1;
}
