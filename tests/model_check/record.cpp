// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "record.hpp"

#include <exception>
#include <vector>

#include "recording.hpp"

namespace adasum::test::model {

recorded record(const scenario& one, std::size_t bytes,
                const std::function<void(const simulated_communicator&)>& reduce) {
  std::vector<std::size_t> cuts;
  for (std::size_t i = 0; i <= one.ranks; ++i) cuts.push_back(i * bytes);
  recorded found;
  found.ranks.resize(one.ranks);
  const auto run = simulate(static_cast<int>(one.ranks), {}, [&](const simulated_communicator& comm) {
    const auto self = static_cast<std::size_t>(comm.rank());
    recording of_rank(self, cuts);
    recording::current = &of_rank;
    try {
      reduce(comm);
    } catch (const std::exception& problem) {
      found.problem = problem.what();
    }
    recording::current = nullptr;
    found.ranks[self] = of_rank.runs();
  });
  if (!run.deadlock.empty()) found.problem = run.deadlock;
  return found;
}

}  // namespace adasum::test::model
