// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string_view>
#include <vector>

#include <adasum/core/concepts.hpp>
#include <adasum/core/stage.hpp>
#include <adasum/detail/references/schedule_ref.hpp>

namespace adasum::test {

/// What a schedule is made of that does what another one does, which is chosen at run time: so that all of them are compiled
/// once. Derived has visit(visitor), which calls visitor(the other one), a name, and parameters().
///
/// The compiler cannot refuse a rule here that the other one cannot run: whoever chooses sees to it.
template <class Derived>
struct forwarded_schedule {
  static constexpr bool supports_gram_rules = true;

  std::vector<stage> stages(int rank, int size, const schedule_input& input) const {
    return to_other([&](detail::schedule_ref other) { return other.stages(rank, size, input); });
  }
  shared_memory_use uses_shared_memory(int size, const schedule_input& input) const {
    return to_other([&](detail::schedule_ref other) { return other.uses_shared_memory(size, input); });
  }
  friend std::string_view chosen_name_of(detail::own_type, const Derived& forwarded, int size,
                                         const schedule_input& input) {
    return static_cast<const forwarded_schedule&>(forwarded).to_other(
        [&](detail::schedule_ref other) { return other.chosen_name(size, input); });
  }
  std::vector<int> leaf_ranks(int size, const schedule_input& input) const {
    return to_other([&](detail::schedule_ref other) { return other.leaf_ranks(size, input); });
  }

  friend bool operator==(const forwarded_schedule&, const forwarded_schedule&) = default;

 private:
  /// What call(a reference to the other schedule) returns. The other one may live no longer than that call.
  template <class Call>
  auto to_other(const Call& call) const {
    return static_cast<const Derived&>(*this).visit(
        [&](const auto& other) { return call(detail::schedule_ref(other)); });
  }
};

}  // namespace adasum::test
