// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A reduction among threads, by a rule and on a machine that texts name.
#include <cstdio>
#include <utility>
#include <vector>

#include <adasum/adasum.hpp>
#include <adasum/machine_file.hpp>
#include <adasum/rules/named.hpp>
#include <adasum/testing.hpp>

int main() {
  const adasum::schedules::machine machine{.across = {.latency = 1.25e-5}};
  const auto read = adasum::detail::machine_from_text(adasum::machine_text(machine), "a test");
  int wrong = read.across.latency != machine.across.latency;
  const auto check = [&](const auto& comm) {
    std::vector<float> gradient(1000, static_cast<float>(comm.rank()));
    auto rule = adasum::rules::named("mean");
    adasum::combine_allreduce(adasum::serial_space{}, comm, gradient, rule);
    for (const float one : gradient)
      if (one != 1 && comm.rank() == 0) wrong = 1;
  };
  adasum::thread_communicator::run(3, check);
  const auto run = adasum::simulate(3, {.seed = 1}, check);
  if (wrong || !run.deadlock.empty()) std::puts("wrong");
  return wrong || !run.deadlock.empty();
}
