// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include <adasum/mpi.hpp>

#include "support/random_gradients.hpp"

/// A program without MPI_Init, whose communicator comes from an MPI session (MPI 4). Skipped where MPI has none.

#if MPI_VERSION >= 4

namespace {

int failures = 0;
void check(bool condition, const std::string& what) {
  if (condition) return;
  ++failures;
  std::fprintf(stderr, "failed: %s\n", what.c_str());
}

template <class Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

/// Plans and single calls, by messages and in memory that ranks share, against the tree of one process.
void check_reductions(const adasum::mpi_communicator& comm) {
  const adasum::serial_space exec;
  const adasum::segments cut{300, 1, 5000};
  const auto gradients = adasum::test::random_gradients<float>(static_cast<std::size_t>(comm.size()), cut.total(), 7);
  std::vector<float> expected(cut.total());
  adasum::adasum_tree(exec, gradients, expected, cut);
  const auto check_result = [&](const std::string& name, std::span<const float> result) {
    for (std::size_t x = 0; x < cut.total(); ++x)
      // Both round each of at most ⌈log₂P⌉ levels.
      if (!(std::abs(result[x] - expected[x]) <= 1e-5f)) return check(false, name + " gives another result");
  };
  const auto mine = gradients[static_cast<std::size_t>(comm.rank())];
  for (const bool in_place : {false, true}) {
    auto gradient = mine;
    const adasum::schedules::automatic order{.in_place = in_place};
    adasum::adasum_allreduce(exec, comm, gradient, cut, order);
    check_result("a single call", gradient);
    auto plan = adasum::plan_allreduce<float>(exec, comm, cut, order);
    gradient = mine;
    plan.start(gradient);
    check_result("a plan", (plan.wait(), gradient));
    std::ranges::copy(mine, plan.buffer().begin());
    plan();
    check_result("a plan's buffer", plan.buffer());
  }
}

/// Errors of messages come back as exceptions, whatever error handlers a program without MPI_COMM_WORLD has.
void check_errors(const adasum::mpi_communicator& comm) {
  if (comm.size() < 2) return;
  std::array<std::byte, 8> bytes{};
  const int peer = comm.rank() ^ 1;
  if (peer >= comm.size()) return;
  const auto exchange = [&](std::size_t sent, std::size_t expected) {
    const adasum::outgoing out{peer, std::span(bytes).first(sent)};
    std::array<std::byte, 8> room{};
    const adasum::incoming in{peer, std::span(room).first(expected)};
    return message_of([&] { comm.exchange(adasum::serial_space{}, std::span(&out, 1), std::span(&in, 1)); });
  };
  check(exchange(8, 4).find("sent more than the expected 4 bytes") != std::string::npos, "a message that is too long");
  check(exchange(4, 8).find("sent 4 bytes instead of the expected 8") != std::string::npos,
        "a message that is too short");
  check(exchange(8, 8) == "", "an exchange after these");
}

}  // namespace

int main() {
  check(message_of([] { adasum::mpi_communicator{MPI_COMM_WORLD}; }) ==
            "adasum::mpi_communicator: MPI is not initialised (call MPI_Init first)",
        "MPI_COMM_WORLD without MPI_Init");
#ifdef MPICH
  constexpr int rounds = 1;  // MPICH 4.0 crashes in the second MPI_Session_init
#else
  constexpr int rounds = 2;  // MPI may be begun and ended several times
#endif
  for (int round = 0; round < rounds; ++round) {
    MPI_Session session = MPI_SESSION_NULL;
    if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) != MPI_SUCCESS) {
      std::puts("this MPI has no sessions");
      return ADASUM_SKIPPED;
    }
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Comm ranks = MPI_COMM_NULL;
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "adasum.test", MPI_INFO_NULL, MPI_ERRORS_RETURN, &ranks);
    MPI_Group_free(&group);
    const auto problem = message_of([&] {
      const adasum::mpi_communicator comm{ranks};
      check_reductions(comm);
      check_errors(comm);
    });
    check(problem.empty(), problem);
    MPI_Comm_free(&ranks);
    MPI_Session_finalize(&session);
  }
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#else

int main() { return ADASUM_SKIPPED; }

#endif
