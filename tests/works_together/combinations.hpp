// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <vector>

#include "combination.hpp"

namespace adasum::test {

/// Every two values of different things that are chosen together, nearly everything else being as it is by default: each rule
/// by each schedule, also of shards; and every other pair.
std::vector<combination> rules_by_schedules(int ranks);
std::vector<combination> other_pairs(int ranks);

/// So many with everything at random, always the same ones.
std::vector<combination> drawn_among(int ranks, std::size_t count);

}  // namespace adasum::test
