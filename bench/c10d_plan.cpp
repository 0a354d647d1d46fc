// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a plan takes among the ranks of a gloo group on the caller's own thread, and on another one that the caller hands it
// to, as a communication hook must: median times. Beside python/allreduce_hook.py, this shows what the hook itself adds.
//
//     torchrun --no-python --nproc-per-node 2 adasum_bench_c10d_plan
#ifndef USE_C10D_GLOO
#define USE_C10D_GLOO  // the headers below are empty without it
#endif
#include <ATen/Parallel.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include <adasum/communicators/c10d.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/plan.hpp>

namespace {

using clock_type = std::chrono::steady_clock;

int number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  if (!text) throw adasum::bad_input(std::string(variable) + " is not set: start this by torchrun");
  return std::stoi(text);
}

c10::intrusive_ptr<c10d::ProcessGroup> group_of_all() {
  const int rank = number_in("RANK"), size = number_in("WORLD_SIZE");
  c10d::TCPStoreOptions where;
  where.port = static_cast<std::uint16_t>(number_in("MASTER_PORT"));
  where.isServer = rank == 0 && !std::getenv("TORCHELASTIC_USE_AGENT_STORE");
  where.numWorkers = static_cast<std::size_t>(size);
  const auto options = c10d::ProcessGroupGloo::Options::create();
  options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
  return c10::make_intrusive<c10d::ProcessGroupGloo>(c10::make_intrusive<c10d::TCPStore>("127.0.0.1", where), rank,
                                                     size, options);
}

double microseconds_of(const auto& call) {
  const auto begin = clock_type::now();
  call();
  return std::chrono::duration<double, std::micro>(clock_type::now() - begin).count();
}

double median_of(std::vector<double> times) {
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
  return times[times.size() / 2];
}

}  // namespace

int main() {
  at::set_num_threads(1);
  const auto group = group_of_all();
  const adasum::c10d_communicator comm(group);
  const adasum::serial_space space;
  adasum::detail::c10d::worker thread;
  std::minstd_rand random(static_cast<unsigned>(comm.rank()) + 1);
  if (comm.rank() == 0) std::printf("KiB      own thread µs  another thread µs\n");
  for (const std::size_t kib : {4, 64, 1024, 4096, 16384}) {
    std::vector<float> mine(256 * kib);
    for (auto& one : mine) one = std::uniform_real_distribution(-1.0F, 1.0F)(random);
    auto plan = adasum::plan_allreduce<float>(space, comm, mine.size());
    plan(mine);
    std::vector<double> own, other;
    for (std::size_t i = 0; i < std::clamp<std::size_t>(4'000'000 / kib, 200, 2000); ++i) {
      group->barrier()->wait();
      own.push_back(microseconds_of([&] { plan(mine); }));
      group->barrier()->wait();
      other.push_back(microseconds_of([&] {
        thread.start([&] { plan(mine); });
        thread.wait();
      }));
    }
    if (comm.rank() == 0) std::printf("%-8zu %13.1f %18.1f\n", kib, median_of(own), median_of(other));
  }
}
