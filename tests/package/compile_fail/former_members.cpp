// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: left_fold or linear_order, since rules::adasum_linear alone
// expect: a member combine_async, which is enqueue_combine now
// expect: the shared memory has a member that is no longer asked for.* or bytes\(\), since each rank has
// expect: the communicator has a member that is no longer asked for.* or note_activity
// expect: the schedule has a member that is no longer asked for: stages_in_place or shared_memory_only
#include <adasum/adasum.hpp>

/// Types with members that the concepts once named.
struct halves {
  static constexpr std::string_view name = "halves";
  adasum::pair_weights operator()(const adasum::pair_gram&) const { return {0.5, 0.5}; }
#ifndef CORRECTED
  static constexpr bool linear_order = true;
#endif
};

struct my_space : adasum::serial_space {
#ifndef CORRECTED
  template <adasum::rule Rule, class T>
  void combine_async(const Rule&, const adasum::slice&, std::span<const T* const>, T*) const {}
#endif
  friend bool operator==(const my_space&, const my_space&) = default;
};

struct sharing : adasum::self_communicator {
  struct window : memory {
    using memory::memory;
#ifndef CORRECTED
    std::size_t bytes() const { return 64; }
#endif
  };
  window share(std::size_t bytes) const { return window(bytes); }
};

struct noting : adasum::self_communicator {
#ifndef CORRECTED
  void note_activity(int) const {}
#endif
};

struct my_doubling {
  static constexpr std::string_view name = "my doubling";
  static constexpr bool supports_gram_rules = false;
  std::vector<adasum::stage> stages(int rank, int size, const adasum::schedule_input& what) const {
    return adasum::schedules::recursive_doubling{}.stages(rank, size, what);
  }
#ifndef CORRECTED
  std::vector<adasum::stage> stages_in_place(int, int, const adasum::schedule_input&) const { return {}; }
#endif
};

void use(std::vector<float>& gradient) {
  const adasum::serial_space space;
  adasum::combine_allreduce(space, adasum::self_communicator{}, gradient, halves{});
  adasum::adasum_allreduce(my_space{}, adasum::self_communicator{}, gradient);
  adasum::adasum_allreduce(space, sharing{}, gradient);
  adasum::adasum_allreduce(space, noting{}, gradient);
  adasum::adasum_allreduce(space, adasum::self_communicator{}, gradient, my_doubling{});
}
