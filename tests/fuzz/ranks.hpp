// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <adasum/adasum.hpp>

#include "input.hpp"

namespace adasum::fuzz {

/// What one rank got.
struct outcome {
  bool is_result = false;
  std::vector<double> values;
  index_range valid;  // where in these the result is
};

/// call(rank, communicator) of all ranks at once, each a thread. A rank that is done leaves: who still waits for it gets an
/// error.
template <class Call>
auto on_each_rank(std::size_t ranks, const Call& call) {
  auto group = thread_communicator::group(static_cast<int>(ranks));
  std::vector<std::invoke_result_t<const Call&, std::size_t, const thread_communicator&>> got(ranks);
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      const auto comm = std::move(group[r]);
      try {
        got[r] = call(r, comm);
      } catch (const std::exception& other) {
        require(false, other.what());
      }
    });
  for (auto& thread : threads) thread.join();
  return got;
}

/// Where both have the result. @pre values of the same length
inline bool same_bits(const outcome& one, const outcome& other) {
  const auto begin = std::max(one.valid.begin, other.valid.begin), end = std::min(one.valid.end, other.valid.end);
  return begin >= end || std::memcmp(&one.values[begin], &other.values[begin], (end - begin) * sizeof(double)) == 0;
}

/// What holds where all ranks were told the same: all have a result, or none, with the same bits where two have it.
template <class Outcome>
void require_same(const std::vector<Outcome>& got) {
  for (const auto& one : got) {
    require(one.is_result == got[0].is_result, "with the same arguments, all ranks get a result, or none does");
    if (!one.is_result) continue;
    require(one.values.size() == got[0].values.size(), "all results have the same length");
    require(same_bits(one, got[0]), "all ranks get the same bits");
  }
}

}  // namespace adasum::fuzz
