// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kokkos views among processes of MPI: in memory of the host, and by the kernels for devices, on the host.
#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include <adasum/comm/any.hpp>
#include <adasum/comm/mpi.hpp>
#include <adasum/comm/self.hpp>
#include <adasum/comm/threads.hpp>
#include <adasum/exec/kokkos.hpp>
#include <adasum/plan.hpp>
#include <adasum/tree.hpp>

#include "abilities.hpp"
#include "check_findings.hpp"
#include "combination.hpp"
#include "near.hpp"

namespace test_of_works_together_kokkos {

using namespace adasum;
using namespace adasum::test;

namespace {

using host = kokkos_space<Kokkos::DefaultHostExecutionSpace>;
/// Whose memory the library treats as a device's.
using device = kokkos_space<Kokkos::DefaultHostExecutionSpace, false>;

const segments cut{40, 17, 33};

template <scalar T>
Kokkos::View<T*, Kokkos::HostSpace> view_of(const std::vector<T>& values) {
  Kokkos::View<T*, Kokkos::HostSpace> view("gradient", values.size());
  std::ranges::copy(values, view.data());
  return view;
}

template <scalar T>
void check_elements(element type, findings& found) {
  const auto gradients = gradients_of_workers<T>(3, cut.total(), 5);
  std::vector<Kokkos::View<T*, Kokkos::HostSpace>> views;
  for (const auto& gradient : gradients) views.push_back(view_of(gradient));
  const auto out = view_of(gradients[0]);
  adasum_tree(host(), views, out, cut);
  check_near<T>(std::span<const T>(out.data(), out.size()), gradients, rules::adasum{}, cut);
  found.note("elements × spaces", to_string(type), "kokkos_space", "right");
  found.count("right");
}

/// A plan for views, among ranks that all are here.
template <class Space, class Comm>
void check_ranks_of(const Comm& comm) {
  const auto gradients = gradients_of_workers<float>(static_cast<std::size_t>(comm.size()), cut.total(), 5);
  const auto own = view_of(gradients[static_cast<std::size_t>(comm.rank())]);
  auto plan = plan_allreduce<float>(Space(), comm, cut);
  plan(own);
  check_near<float>(std::span<const float>(own.data(), own.size()), gradients, rules::adasum{}, cut);
}
template <class Space>
void check_communicators(std::string_view space, findings& found) {
  check_ranks_of<Space>(self_communicator{});
  check_ranks_of<Space>(mpi_communicator(MPI_COMM_WORLD));
  note_abilities<self_communicator, Space>(found, "self_communicator", space, true);
  note_abilities<mpi_communicator, Space>(found, "mpi_communicator", space, true);
  note_abilities<thread_communicator, Space>(found, "thread_communicator", space, false);
  note_abilities<any_communicator, Space>(found, "any_communicator", space, false);
  found.count("right", 2);
}

}  // namespace

TEST_CASE("works together: Kokkos") {
  const Kokkos::ScopeGuard session;
  findings found;
  check_elements<float>(element::of_float, found);
  check_elements<double>(element::of_double, found);
  check_elements<Eigen::half>(element::of_half, found);
  check_elements<Eigen::bfloat16>(element::of_bfloat16, found);
  check_communicators<host>("kokkos_space of the host", found);
  check_communicators<device>("kokkos_space of a device", found);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) check_findings(found, "kokkos");
}

}  // namespace test_of_works_together_kokkos
