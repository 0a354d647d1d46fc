// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <adasum/mpi.hpp>

/// environment [LEVEL]: which threads may make a communicator, make a plan and run it when MPI was initialised with single, funneled, serialized
/// or multiple (the default). A program of its own, because MPI can be initialised only once.

namespace {

std::string message_of_construction() {
  try {
    const adasum::mpi_communicator comm{MPI_COMM_WORLD};
    return "";
  } catch (const std::exception& e) {
    return e.what();
  }
}

template <class Call>
std::string message_of(const Call& call) {
  try {
    call();
    return "";
  } catch (const std::exception& e) {
    return e.what();
  }
}

/// Calls from a thread that did not initialise MPI, on a communicator that the one that did has made. @return what went wrong
std::string calls_from_another_thread(const std::string& refusal) {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  const adasum::serial_space exec;
  std::vector<float> gradient(100, 1);
  auto plan = adasum::plan_allreduce<float>(exec, comm, gradient.size());
  std::string wrong;
  const auto check = [&](const char* call, const auto& action) {
    std::string message;
    std::thread([&] { message = message_of(action); }).join();
    const bool as_expected = refusal.empty() ? message.empty() : message.ends_with(refusal);
    if (!as_expected) wrong += std::string(call) + ": \"" + message + "\"; ";
  };
  check("plan_allreduce", [&] { adasum::plan_allreduce<float>(exec, comm, gradient.size()); });
  check("adasum_allreduce", [&] { adasum::adasum_allreduce(exec, comm, gradient); });
  check("buffer", [&] { plan.buffer(); });
  check("plan", [&] { plan(gradient); });
  check("start", [&] {
    plan.start(gradient);
    plan.wait();
  });
  plan.start(gradient);
  check("test", [&] { plan.test(); });
  check("wait", [&] { plan.wait(); });
  if (plan.is_in_flight()) plan.wait();  // what was refused has changed nothing
  for (const float one : gradient)
    if (one != 1) return wrong + "the result is " + std::to_string(one);
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, int> levels{{"single", MPI_THREAD_SINGLE},
                                          {"funneled", MPI_THREAD_FUNNELED},
                                          {"serialized", MPI_THREAD_SERIALIZED},
                                          {"multiple", MPI_THREAD_MULTIPLE}};
  const std::string level = argc > 1 ? argv[1] : "multiple";
  if (!levels.contains(level)) return EXIT_FAILURE;
  const int wanted = levels.at(level);
  int provided = -1;
  MPI_Init_thread(nullptr, nullptr, wanted, &provided);
  if (provided != wanted) {  // a library may give another level than was asked for
    std::printf("MPI gives level %d instead of %d\n", provided, wanted);
    MPI_Finalize();
    return ADASUM_SKIPPED;
  }
  const std::string from_main = message_of_construction();
  std::string from_other;
  std::thread([&] { from_other = message_of_construction(); }).join();

  std::string refusal;
  if (wanted == MPI_THREAD_SINGLE || wanted == MPI_THREAD_FUNNELED)
    refusal = std::string(": MPI was initialised with ") +
              (wanted == MPI_THREAD_SINGLE ? "MPI_THREAD_SINGLE" : "MPI_THREAD_FUNNELED") +
              ", so only the thread that initialised it may use MPI, and this is another thread; call MPI_Init_thread "
              "with MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE";
  const std::string expected = refusal.empty() ? "" : "adasum::mpi_communicator" + refusal;
  const std::string wrong = message_of([&] {
    if (const auto calls = calls_from_another_thread(refusal); !calls.empty()) throw std::runtime_error(calls);
  });
  MPI_Finalize();

  if (!wrong.empty()) std::fprintf(stderr, "failed: %s\n", wrong.c_str());
  if (!from_main.empty()) std::fprintf(stderr, "failed: on the main thread: %s\n", from_main.c_str());
  if (from_other != expected)
    std::fprintf(stderr, "failed: on another thread: \"%s\" instead of \"%s\"\n", from_other.c_str(), expected.c_str());
  return wrong.empty() && from_main.empty() && from_other == expected ? EXIT_SUCCESS : EXIT_FAILURE;
}
