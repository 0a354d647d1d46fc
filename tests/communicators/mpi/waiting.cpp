// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <mpi.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <adasum/core/waiting.hpp>
#include <adasum/mpi.hpp>

#include "support/mpi_world.hpp"

/// A rank that does not come, while others wait for at most so long: by every way in which ranks wait. A program of its own,
/// because messages are still in flight after that.

using namespace adasum::test;
using namespace std::chrono_literals;

namespace {

constexpr int late_rank = 1;
constexpr std::size_t length = 200'000;  // more than MPI sends before the receiver has come

bool good = true;
bool interrupts = false;
void check(bool condition, const std::string& what) {
  if (condition) return;
  good = false;
  std::fprintf(stderr, "failed on rank %d: %s\n", world_rank(), what.c_str());
}

/// What the action throws: of a timeout_error only, and with the rank.
std::string timeout_of(const std::function<void()>& action, int* rank = nullptr) {
  try {
    action();
  } catch (const adasum::timeout_error& error) {
    if (rank) *rank = error.rank();
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another error: ") + error.what();
  }
  return "no error";
}

/// A call that the late rank makes after the others have given up.
void check_call(const std::string& name, const std::string& doing, const adasum::mpi_communicator& comm,
                const std::function<void()>& call) {
  comm.set_timeout(300ms);
  int late = -1;
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank() != late_rank) {
    const auto message = timeout_of(call, &late);
    check(message.find("has not come within 0.3 seconds, in " + doing) != std::string::npos,
          name + " says \"" + message + "\"");
    check(late >= 0 && message.find("rank " + std::to_string(late) + " (on the node of rank ") != std::string::npos,
          name + " does not name the rank: \"" + message + "\"");
    if (world_size() == 2) check(late == late_rank, name + " names rank " + std::to_string(late));
    check(comm.state().gave_up(), name + ": the communicator does not know");
    const auto again = timeout_of(call);
    check(again.find("cannot use this communicator any more") != std::string::npos, name + ", again: " + again);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  // What the others had sent is there, so it may get on for a while; but it does not wait for ever.
  if (world_rank() == late_rank) timeout_of(call);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const adasum::serial_space exec;
  // What messages use: it stays until the program ends.
  auto& gradient = *new std::vector<float>(length, 1);
  using adasum::schedules::automatic;

  {
    const adasum::mpi_communicator comm{MPI_COMM_WORLD};
    check(comm.timeout() == adasum::no_timeout && !comm.state().gave_up(),
          "a communicator has a timeout from the beginning");
    check_call("making a plan", "adasum::plan_allreduce", comm,
               [&] { const auto plan = adasum::plan_allreduce<float>(exec, comm, length); });
  }
  for (const bool checked : {false, true}) {
    const adasum::mpi_communicator comm{MPI_COMM_WORLD};
    auto plan =
        adasum::plan_allreduce<float>(exec, comm, length, automatic{.in_place = false}, {.check_agreement = checked});
    plan(gradient);
    check_call("a plan", checked ? "comparing what" : "bringing gradients", comm, [&] { plan(gradient); });
  }
  {
    const adasum::mpi_communicator comm{MPI_COMM_WORLD};
    auto plan =
        adasum::plan_allreduce<float>(exec, comm, length, automatic{.in_place = false}, {.check_agreement = false});
    check_call("start and wait", "bringing gradients", comm, [&] {
      plan.start(gradient);
      plan.wait();
    });
  }
  {  // by messages
    const adasum::mpi_communicator comm{MPI_COMM_WORLD};
    const auto call = [&] { adasum::adasum_allreduce(exec, comm, gradient, adasum::schedules::all_to_all{}); };
    call();
    check_call("a single call", "comparing what", comm, call);
  }
  {
    const adasum::mpi_communicator comm{MPI_COMM_WORLD};
    auto plan = adasum::plan_allreduce<float>(exec, comm, length, {.check_agreement = false});
    check_call("a plan's buffer", "adasum::allreduce_plan::buffer", comm, [&] { plan.buffer(); });
  }
  {
    const adasum::mpi_communicator comm{MPI_COMM_WORLD};
    comm.set_timeout(300ms);
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank() != late_rank) {
      const auto message = timeout_of([&] { comm.share(100); });
      check(message.find("another rank has not come within") != std::string::npos, "sharing memory: " + message);
      check(timeout_of([&] { comm.share(100); }).find("any more") != std::string::npos, "sharing again");
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  {  // in memory that ranks share, where messages play no part
    const adasum::mpi_communicator comm{MPI_COMM_WORLD};
    auto plan = adasum::plan_allreduce<float>(exec, comm, length, {.check_agreement = false});
    plan.buffer();
    plan();
    comm.set_timeout(300ms);
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank() != late_rank) {
      const auto message = timeout_of([&] { plan(); });
      const auto some_other = message.find("failed in this reduction");
      check(message.find("rank 1 did not come within 0.3 seconds, in bringing") != std::string::npos ||
                (world_size() > 2 && some_other != std::string::npos),
            "in shared memory: " + message);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  {  // a single call there, and the next one
    const adasum::mpi_communicator comm{MPI_COMM_WORLD};
    const auto call = [&] { adasum::adasum_allreduce(exec, comm, gradient); };
    call();
    comm.set_timeout(300ms);
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank() != late_rank) {
      const auto message = timeout_of(call);
      const auto some_other = message.find("failed in this reduction");
      check(message.find("rank 1 did not come within 0.3 seconds, in bringing") != std::string::npos ||
                (world_size() > 2 && some_other != std::string::npos),
            "a single call in shared memory: " + message);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank() == late_rank) {
      const auto message = timeout_of(call);
      check(message.find("failed in this reduction") != std::string::npos, "the late rank's call: " + message);
    }
    comm.set_timeout(adasum::no_timeout);
    std::ranges::fill(gradient, 1.0f);
    call();
    check(gradient.front() == 1, "the call after that: " + std::to_string(gradient.front()));
  }
  {  // a program that is interrupted while it waits: by messages, and in shared memory
    adasum::set_interruption_check([] { return interrupts; });
    for (const bool shares : {false, true}) {
      const adasum::mpi_communicator comm{MPI_COMM_WORLD};
      auto plan =
          adasum::plan_allreduce<float>(exec, comm, length, automatic{.in_place = shares}, {.check_agreement = false});
      if (shares) plan.buffer();
      const auto run = [&] { shares ? plan() : plan(gradient); };
      run();
      MPI_Barrier(MPI_COMM_WORLD);
      interrupts = world_rank() != late_rank;
      if (interrupts) {
        const auto message = timeout_of(run);
        const auto some_other = message.find("failed in this reduction");
        check(message.find("had not come when the wait was interrupted, in bringing") != std::string::npos ||
                  (world_size() > 2 && some_other != std::string::npos),
              "interrupted: " + message);
        check(shares || comm.state().gave_up(), "interrupted: the communicator does not know");
      }
      interrupts = false;
      MPI_Barrier(MPI_COMM_WORLD);
      if (world_rank() == late_rank && !shares) comm.set_timeout(300ms);
      if (world_rank() == late_rank && !shares) timeout_of(run);
    }
    check(adasum::set_interruption_check(nullptr) != nullptr, "there was no check");
  }
  {  // one that waits less than the timeout is not late; short and long messages arrive as without one
    const adasum::mpi_communicator comm{MPI_COMM_WORLD};
    comm.set_timeout(60s);
    if (world_rank() == late_rank) std::this_thread::sleep_for(500ms);
    for (const std::size_t some : {std::size_t{3}, std::size_t{100}, length}) {
      std::vector<float> ones(some, 1);
      const auto found = adasum::adasum_allreduce(exec, comm, ones, automatic{.in_place = false});
      for (const float one : ones) check(one == 1, "the result is " + std::to_string(one));
      check(found.norm(0, 0) == found.norm(static_cast<std::size_t>(late_rank), 0), "the report's norms");
    }
    for (const double wrong : {0.0, -1.0}) {
      bool refused = false;
      try {
        comm.set_timeout(std::chrono::duration<double>(wrong));
      } catch (const adasum::bad_input&) {
        refused = true;
      }
      check(refused && comm.timeout() == 60s, "a timeout of " + std::to_string(wrong));
    }
  }

  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();  // returns, since all ranks are alive
  return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
