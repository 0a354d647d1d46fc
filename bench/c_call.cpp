// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// c_call [ROUNDS]: what a call of the C library costs beside the same call in C++: plans and single calls of 256 floats, one
// after the other in each round; the median over the rounds, and that of the differences, on rank 0.
#include <adasum/adasum.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <adasum/mpi.hpp>

namespace {

using seconds = std::chrono::duration<double>;
constexpr std::size_t length = 256;
constexpr int calls_in_round = 50;

double median(std::vector<double> times) {
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
  return times[times.size() / 2];
}

/// Seconds for one call. All ranks begin together.
template <class Call>
double time_of(const Call& call) {
  MPI_Barrier(MPI_COMM_WORLD);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < calls_in_round; ++i) call();
  return seconds(std::chrono::steady_clock::now() - begin).count() / calls_in_round;
}

void require(int error) {
  if (error == ADASUM_SUCCESS) return;
  std::fprintf(stderr, "%s: %s\n", adasum_error_name(error), adasum_last_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

template <class First, class Second>
void compare(const char* name, int rounds, const First& in_cxx, const Second& in_c) {
  std::vector<double> cxx, c, difference;
  for (int round = -rounds / 10; round < rounds; ++round) {
    // By turns the first.
    double a = 0, b = 0;
    if (round % 2 == 0) {
      a = time_of(in_cxx);
      b = time_of(in_c);
    } else {
      b = time_of(in_c);
      a = time_of(in_cxx);
    }
    if (round < 0) continue;
    cxx.push_back(a);
    c.push_back(b);
    difference.push_back(b - a);
  }
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == 0)
    std::printf("%-12s %d ranks: C++ %7.3f us, C %7.3f us, difference %+7.3f us\n", name, size, 1e6 * median(cxx),
                1e6 * median(c), 1e6 * median(difference));
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 400;
  {
    const adasum::serial_space exec;
    const adasum::mpi_communicator comm(MPI_COMM_WORLD);
    std::vector<float> gradient(length, 1.0f);
    constexpr adasum::basic_options<true> options{.check_agreement = false};  // as the C library has them
    auto plan = adasum::plan_allreduce<float>(exec, comm, length, options);
    adasum_plan c_plan = ADASUM_NULL;
    require(adasum_plan_create(MPI_COMM_WORLD, length, ADASUM_FLOAT, nullptr, 0, nullptr, nullptr, &c_plan));
    compare(
        "plan", rounds, [&] { plan(gradient); },
        [&] { require(adasum_plan_run(c_plan, gradient.data(), length, ADASUM_FLOAT, nullptr)); });
    adasum_report report = ADASUM_NULL;
    compare(
        "plan, report", rounds, [&] { plan(gradient); },
        [&] { require(adasum_plan_run(c_plan, gradient.data(), length, ADASUM_FLOAT, &report)); });
    compare(
        "single call", rounds, [&] { adasum::adasum_allreduce(exec, comm, gradient, options); },
        [&] {
          require(adasum_allreduce(MPI_COMM_WORLD, gradient.data(), length, ADASUM_FLOAT, nullptr, 0, nullptr, nullptr,
                                   nullptr));
        });
    require(adasum_report_free(&report));
    require(adasum_plan_free(&c_plan));
  }
  MPI_Finalize();
}
