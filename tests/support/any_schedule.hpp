// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <adasum/core/concepts.hpp>
#include <adasum/detail/references/schedule_ref.hpp>

namespace adasum::test {

/// Does what another schedule does, which is chosen at run time: so that a test of many schedules is compiled once. (Without
/// inner rules.)
class any_schedule {
 public:
  static constexpr std::string_view name = "any_schedule";
  /// The compiler cannot refuse a rule that the other one cannot run: whoever chooses sees to it.
  static constexpr bool supports_gram_rules = true;

  template <class Schedule>
    requires(!std::is_same_v<Schedule, any_schedule>) && schedule<Schedule>
  any_schedule(Schedule order)
      : held_(std::make_shared<Schedule>(std::move(order))), order_(*static_cast<const Schedule*>(held_.get())) {}

  std::vector<stage> stages(int rank, int size, const schedule_input& input) const {
    return order_.stages(rank, size, input);
  }
  shared_memory_use uses_shared_memory(int size, const schedule_input& input) const {
    return order_.uses_shared_memory(size, input);
  }
  friend std::string_view chosen_name_of(detail::own_type, const any_schedule& any, int size,
                                         const schedule_input& input) {
    return any.order_.chosen_name(size, input);
  }
  std::vector<int> leaf_ranks(int size, const schedule_input& input) const { return order_.leaf_ranks(size, input); }
  std::vector<double> parameters() const { return order_.parameters(); }
  friend bool operator==(const any_schedule& a, const any_schedule& b) { return a.order_.equals(b.order_); }

 private:
  std::shared_ptr<const void> held_;
  detail::schedule_ref order_;
};

}  // namespace adasum::test
