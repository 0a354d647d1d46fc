// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <string>
#include <thread>

#include <adasum/comm/mpi.hpp>

/// environment [LEVEL]: which threads may make a communicator when MPI was initialised with single, funneled, serialized
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
  MPI_Finalize();

  std::string expected;
  if (wanted == MPI_THREAD_SINGLE || wanted == MPI_THREAD_FUNNELED)
    expected = std::string("adasum::mpi_communicator: MPI was initialised with ") +
               (wanted == MPI_THREAD_SINGLE ? "MPI_THREAD_SINGLE" : "MPI_THREAD_FUNNELED") +
               ", so only the thread that initialised it may use MPI, and this is another thread; call MPI_Init_thread "
               "with MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE";
  if (!from_main.empty()) std::fprintf(stderr, "failed: on the main thread: %s\n", from_main.c_str());
  if (from_other != expected)
    std::fprintf(stderr, "failed: on another thread: \"%s\" instead of \"%s\"\n", from_other.c_str(), expected.c_str());
  return from_main.empty() && from_other == expected ? EXIT_SUCCESS : EXIT_FAILURE;
}
