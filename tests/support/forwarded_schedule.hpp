// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string_view>
#include <vector>

#include <adasum/core/concepts.hpp>
#include <adasum/core/stage.hpp>

namespace adasum::test {

/// What a schedule is made of that does what another one does, which is chosen at run time: so that all of them are compiled
/// once. Derived has visit(visitor), which calls visitor(the other one), a name, and parameters().
///
/// The compiler cannot refuse a rule here that the other one cannot run: whoever chooses sees to it.
template <class Derived>
struct forwarded_schedule {
  static constexpr bool supports_gram_rules = true;

  std::vector<stage> stages(int rank, int size, const schedule_input& input) const {
    return self().visit([&](const auto& order) { return order.stages(rank, size, input); });
  }
  shared_memory_use uses_shared_memory(int size, const schedule_input& input) const {
    return self().visit([&](const auto& order) {
      if constexpr (requires { order.uses_shared_memory(size, input); })
        return order.uses_shared_memory(size, input);
      else
        return shared_memory_use::none;
    });
  }
  friend std::string_view chosen_name_of(detail::own_type own, const Derived& forwarded, int size,
                                         const schedule_input& input) {
    return forwarded.visit([&](const auto& order) -> std::string_view {
      if constexpr (requires { chosen_name_of(own, order, size, input); })
        return chosen_name_of(own, order, size, input);
      else
        return order.name;
    });
  }
  std::vector<int> leaf_ranks(int size, const schedule_input& input) const {
    return self().visit([&](const auto& order) {
      if constexpr (requires { order.leaf_ranks(size, input); })
        return order.leaf_ranks(size, input);
      else
        return std::vector<int>();
    });
  }

  friend bool operator==(const forwarded_schedule&, const forwarded_schedule&) = default;

 private:
  const Derived& self() const { return static_cast<const Derived&>(*this); }
};

}  // namespace adasum::test
