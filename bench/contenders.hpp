// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "agreed.hpp"
#include "noise.hpp"

/// Reductions of the same gradients, measured in turns: a round runs each of them, so that other load affects them all. Their
/// order changes from round to round: over a limited link, what ran before leaves fewer bytes that pass at once. One figure is
/// a batch between two looks at the clock, after a barrier.

/// Of floats, and seconds for each number of them.
constexpr std::size_t smallest = 256, growth = 4, default_largest = std::size_t{1} << 24;
constexpr double default_seconds = 3;

constexpr int fewest_rounds = 5, most_rounds = 301;

/// A batch lasts at least so long, unless it gets too many runs.
constexpr double batch_seconds = 200e-6;
/// A sum in place grows by the number of ranks at every run: 32 of them keep floats of 15 ranks finite.
constexpr int largest_batch = 32;

struct contender {
  std::string name;
  std::function<void(std::span<float>)> run;
  std::string schedule = {};          // the one that runs
  std::vector<double> seconds = {};   // of one run, for each round: the slowest rank's
  std::vector<double> quickest = {};  // the quickest rank's
  std::span<float> own = {};          // where its gradient must lie; empty: anywhere
};

/// MPI_Allreduce of floats.
inline contender sum_on(std::string name, MPI_Comm comm) {
  return {std::move(name), [comm](std::span<float> gradient) {
            MPI_Allreduce(MPI_IN_PLACE, gradient.data(), static_cast<int>(gradient.size()), MPI_FLOAT, MPI_SUM, comm);
          }};
}

/// A single call for `length` floats, once it has been made before. @param call  call(gradient): the report
template <class Call>
contender called(std::string name, std::size_t length, const Call& call) {
  contender one{std::move(name), [call](std::span<float> gradient) { call(gradient); }};
  std::vector<float> gradient(length);
  for (int i = 0; i < 2; ++i) one.schedule = call(std::span(gradient)).schedule();
  return one;
}

/// A plan of `length` floats. @param make  make(): the plan
template <class Make>
contender planned(std::string name, std::size_t length, const Make& make, bool in_its_buffer = false) {
  using plan_type = decltype(make());
  const std::shared_ptr<plan_type> plan(new plan_type(make()));
  contender one{std::move(name), [plan](std::span<float> gradient) { (*plan)(gradient); }};
  std::vector<float> gradient(length);
  one.schedule = (*plan)(gradient).schedule();
  if (in_its_buffer) one.own = plan->buffer();
  return one;
}

struct batch_time {
  double slowest, quickest;
};

/// Seconds of one run, out of a batch from fresh gradients.
inline batch_time time_batch(const contender& one, int batch, std::span<const float> fresh, std::span<float> anywhere) {
  const auto gradient = one.own.empty() ? anywhere : one.own;
  std::ranges::copy(fresh, gradient.begin());
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < batch; ++i) one.run(gradient);
  const double mine = (MPI_Wtime() - start) / batch;
  double both[] = {mine, -mine};
  MPI_Allreduce(MPI_IN_PLACE, both, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return {both[0], -both[1]};
}

/// Fills in contender::seconds and quickest; the first is the baseline. Returns how many runs made one batch.
inline int run_rounds(std::vector<contender>& all, std::size_t length, int rank, double budget) {
  std::vector<float> fresh(length), gradient(length);
  fill_with_noise(std::span(fresh), static_cast<std::uint32_t>(rank));
  const double start = MPI_Wtime();
  for (const auto& one : all) time_batch(one, 1, fresh, gradient);
  const double once = agreed(time_batch(all.front(), 4, fresh, gradient).slowest);
  const int batch = std::clamp(static_cast<int>(batch_seconds / once), 1, largest_batch);
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::minstd_rand random;  // the same on all ranks
  for (int round = 0; round < most_rounds; ++round) {
    if (agreed(round >= fewest_rounds && MPI_Wtime() - start > budget)) break;
    std::ranges::shuffle(order, random);
    for (const auto place : order) {
      auto& one = all[place];
      const auto took = time_batch(one, batch, fresh, gradient);
      one.seconds.push_back(took.slowest);
      one.quickest.push_back(took.quickest);
    }
  }
  return batch;
}

inline void print_list(const char* name, const std::vector<double>& seconds) {
  std::printf(", \"%s\": [", name);
  for (std::size_t i = 0; i < seconds.size(); ++i) std::printf("%s%.9g", i == 0 ? "" : ", ", seconds[i]);
  std::printf("]");
}

inline void print_rows(const std::vector<contender>& all, std::size_t length, int batch, bool first) {
  for (const auto& one : all) {
    std::printf("%s\n    {\"elements\": %zu, \"name\": \"%s\", \"schedule\": \"%s\", \"batch\": %d", first ? "" : ",",
                length, one.name.c_str(), one.schedule.c_str(), batch);
    print_list("seconds", one.seconds);
    print_list("quickest", one.quickest);
    std::printf("}");
    first = false;
  }
  std::fflush(stdout);
}

/// All ranks work for so many seconds.
inline void warm_up(double seconds) {
  int goes_on = 1;
  for (const double start = MPI_Wtime(); goes_on;) {
    goes_on = MPI_Wtime() - start < seconds;
    MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
}

/// The rows of all lengths, as JSON. @param contenders  contenders(length)
template <class Contenders>
void print_all(const char* mpi, int rank, int ranks, std::size_t largest, double seconds,
               const Contenders& contenders) {
  const bool root = rank == 0;
  if (root) std::printf("{\"mpi\": \"%s\", \"ranks\": %d, \"rows\": [", mpi, ranks);
  for (auto length = smallest; length <= largest; length *= growth) {
    std::vector<contender> all = contenders(length);
    const int batch = run_rounds(all, length, rank, seconds);
    if (root) print_rows(all, length, batch, length == smallest);
  }
  if (root) std::printf("\n]}\n");
}
