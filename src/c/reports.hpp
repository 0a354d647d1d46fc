// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <memory>
#include <utility>

#include <adasum/adasum.h>
#include <adasum/core/report.hpp>

namespace adasum::c {

/// Where a call writes its report, found before the call begins, so that what is wrong with it is known by then. Nowhere, if
/// the caller wants none.
class report_place {
 public:
  /// @throws bad_input  a report that was freed
  report_place(adasum_report* wanted, const char* call);
  report_place(const report_place&) = delete;
  report_place& operator=(const report_place&) = delete;
  ~report_place();

  /// The call has succeeded.
  void take(const report& found) {
    if (!report_) return;
    *report_ = found;
    keep();
  }
  void take(report&& found) {
    if (!report_) return;
    *report_ = std::move(found);
    keep();
  }

 private:
  void keep() noexcept;

  adasum_report* handle_;
  std::shared_ptr<report> report_;
  adasum_report made_{0};  // if the caller had none; handed over once there is something in it
};

}  // namespace adasum::c
