// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <vector>

#include "everything.hpp"
#include "reductions.hpp"

/// Adds what every public call makes of the same two gradients. Static, so that each translation unit has its own.
template <class T>
static void add_reductions(std::vector<std::vector<double>>& results) {
  const adasum::serial_space exec;
  const std::vector<std::vector<T>> gradients{{4, 5, 6, 7}, {8, 9, 10, 11}};
  const adasum::segments whole{4};
  const auto add = [&](const std::vector<T>& result) { results.emplace_back(result.begin(), result.end()); };

  std::vector<T> out(4);
  adasum::adasum_pair(exec, gradients[0], gradients[1], out);
  add(out);
  adasum::adasum_tree(exec, gradients, out, whole);
  add(out);
  adasum::combine(exec, gradients, out, adasum::rules::adasum{}, whole);
  add(out);
  adasum::thread_communicator::run(2, [&](adasum::thread_communicator comm) {
    const auto& mine = gradients[static_cast<std::size_t>(comm.rank())];
    auto gradient = mine;
    adasum::adasum_allreduce(exec, comm, gradient, whole, adasum::schedules::recursive_halving{});
    if (comm.rank() == 0) add(gradient);
    gradient = mine;
    adasum::plan_allreduce<T>(exec, comm, whole, adasum::schedules::recursive_doubling{})(gradient);
    if (comm.rank() == 0) add(gradient);
  });
}

static reductions all_reductions() {
  reductions made{adasum::options::checked_by_default, {}};
  add_reductions<float>(made.results);
  add_reductions<double>(made.results);
  return made;
}
