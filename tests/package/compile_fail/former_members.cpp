// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: left_fold or linear_order, since rules::adasum_linear alone
// expect: a member combine_async, which is enqueue_combine now
// expect: the schedule has a member that is no longer asked for: stages_in_place or shared_memory_only
#include <adasum/adasum.hpp>
#include <adasum/testing.hpp>

/// Types with members that the concepts once named; corrected, with other members of such names, which are their own affair.
struct halves {
  static constexpr std::string_view name = "halves";
  adasum::pair_weights operator()(const adasum::pair_gram&) const { return {0.5, 0.5}; }
#ifndef CORRECTED
  static constexpr bool linear_order = true;
#else
  std::vector<int> linear_order;
  adasum::rules::mean fallback;
#endif
};

struct my_space : adasum::serial_space {
#ifndef CORRECTED
  template <adasum::rule Rule, class T>
  void combine_async(const Rule&, const adasum::slice&, std::span<const T* const>, T*) const {}
#else
  void upload(const std::vector<float>&, float*) const {}
#endif
  friend bool operator==(const my_space&, const my_space&) = default;
};

struct my_doubling {
  static constexpr std::string_view name = "my doubling";
  static constexpr bool supports_gram_rules = false;
  std::vector<adasum::stage> stages(int rank, int size, const adasum::schedule_input& what) const {
    return adasum::schedules::recursive_doubling{}.stages(rank, size, what);
  }
#ifndef CORRECTED
  std::vector<adasum::stage> stages_in_place(int, int, const adasum::schedule_input&) const { return {}; }
#else
  bool all_at_once = true;
  int leaf_rank = 0;
  friend bool operator==(const my_doubling&, const my_doubling&) = default;
#endif
};

struct alone : adasum::self_communicator {
  int node = 0;
  void note_activity() const {}
};

void use(std::vector<float>& gradient) {
  const adasum::serial_space space;
  adasum::combine_allreduce(space, adasum::self_communicator{}, gradient, halves{});
  adasum::adasum_allreduce(my_space{}, adasum::self_communicator{}, gradient);
  adasum::adasum_allreduce(space, alone{}, gradient, my_doubling{});
#ifdef CORRECTED
  adasum::check_rule(halves{});
  adasum::check_execution_space<float>(my_space{});
  adasum::check_communicator(alone{}, space);
  adasum::check_schedule(my_doubling{});
#endif
}
