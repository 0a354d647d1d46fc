// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <adasum/core/concepts.hpp>
#include <adasum/detail/references/schedule_ref.hpp>

#include "forwarded_schedule.hpp"

namespace adasum::test {

/// Does what another schedule does, which is chosen at run time: so that a test of many schedules is compiled once. (Without
/// inner rules.)
class any_schedule : public forwarded_schedule<any_schedule> {
 public:
  static constexpr std::string_view name = "any_schedule";

  template <class Schedule>
    requires(!std::is_same_v<Schedule, any_schedule>) && schedule<Schedule>
  any_schedule(Schedule order)
      : held_(std::make_shared<Schedule>(std::move(order))), order_(*static_cast<const Schedule*>(held_.get())) {}

  template <class Visitor>
  auto visit(const Visitor& visitor) const {
    return visitor(order_);
  }
  std::vector<double> parameters() const { return order_.parameters(); }
  friend bool operator==(const any_schedule& a, const any_schedule& b) { return a.order_.equals(b.order_); }

 private:
  std::shared_ptr<const void> held_;
  detail::schedule_ref order_;
};

}  // namespace adasum::test
