// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the rule has a member need, .* it looks for needs
// expect: the space has a member reaches .* it looks for can_reach
// expect: the communicator has a member node .* it looks for nodes
// expect: the schedule has a member use_shared_memory, .* it looks for uses_shared_memory
#include <adasum/adasum.hpp>
#include <adasum/testing.hpp>

#ifdef CORRECTED
#define RIGHT_OR_WRONG(right, wrong) right
#else
#define RIGHT_OR_WRONG(right, wrong) wrong
#endif

/// Types with members that are nearly optional ones.
struct halves {
  static constexpr std::string_view name = "halves";
  static constexpr auto RIGHT_OR_WRONG(needs, need) = adasum::inner_products::none;
  adasum::pair_weights operator()(const adasum::pair_gram&) const { return {0.5, 0.5}; }
};

struct my_space : adasum::serial_space {
  bool RIGHT_OR_WRONG(can_reach, reaches)(const void*) const { return true; }
  friend bool operator==(const my_space&, const my_space&) = default;
};

struct alone : adasum::self_communicator {
  std::vector<int> RIGHT_OR_WRONG(nodes, node)() const { return {0}; }
};

struct my_doubling : adasum::schedules::recursive_doubling {
  adasum::shared_memory_use RIGHT_OR_WRONG(uses_shared_memory, use_shared_memory)(int,
                                                                                  const adasum::schedule_input&) const {
    return adasum::shared_memory_use::none;
  }
  friend bool operator==(const my_doubling&, const my_doubling&) = default;
};

void check() {
  adasum::check_rule(halves{});
  adasum::check_execution_space<float>(my_space{});
  adasum::check_communicator(alone{}, adasum::serial_space{});
  adasum::check_schedule(my_doubling{});
}
