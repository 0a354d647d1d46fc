// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <vector>

#include "everything.hpp"
#include "reductions.hpp"

/// Every public call once, on the same two gradients. Has no linkage: each translation unit instantiates its own.
static reductions all_reductions() {
  const adasum::serial_space exec;
  const std::vector<std::vector<float>> gradients{{4, 5, 6, 7}, {8, 9, 10, 11}};
  const adasum::segments whole{4};
  std::vector<float> pair(4), tree(4), general(4), distributed(4), planned(4);

  adasum::adasum_pair(exec, gradients[0], gradients[1], pair);
  adasum::adasum_tree(exec, gradients, tree, whole);
  adasum::combine(exec, adasum::rules::adasum{}, gradients, general, whole);
  adasum::thread_communicator::run(2, [&](adasum::thread_communicator comm) {
    auto mine = gradients[static_cast<std::size_t>(comm.rank())];
    adasum::adasum_allreduce(exec, comm, mine, whole, adasum::schedules::recursive_halving{});
    if (comm.rank() == 0) distributed = mine;
    mine = gradients[static_cast<std::size_t>(comm.rank())];
    adasum::plan_allreduce<float>(exec, comm, whole, adasum::schedules::recursive_doubling{})(mine);
    if (comm.rank() == 0) planned = mine;
  });
  return {adasum::options::checked_by_default, {pair, tree, general, distributed, planned}};
}
