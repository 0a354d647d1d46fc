// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <vector>

#include "combination.hpp"

namespace adasum::test {

/// Each rule by each schedule, also of shards. Nearly everything else is as it is by default.
std::vector<combination> rules_by_schedules(int ranks);
/// Every two other values that are chosen together.
std::vector<combination> other_pairs(int ranks);
/// Each schedule, of whole gradients and of shards, under three rules: what tells communicators apart.
std::vector<combination> schedules_of(int ranks);
/// Some with everything at random, always the same ones.
std::vector<combination> drawn_among(int ranks);

}  // namespace adasum::test
