// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "reports.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include <adasum/report_text.hpp>

#include "errors.hpp"
#include "handles.hpp"

namespace adasum::c {
namespace {

/// It stays until the process ends: a static object of the program may use it late.
handle_table<report>& reports() {
  static auto* const all = new handle_table<report>("report");
  return *all;
}

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

/// read(report), or the other value where there is no such report, or read throws.
template <class Value, class Read>
Value read_or(Value otherwise, adasum_report which, const char* call, const Read& read) noexcept {
  return value_or(otherwise, [&] { return static_cast<Value>(read(*reports().find(which.id, call))); });
}

}  // namespace

report_place::report_place(adasum_report* wanted, const char* call) : handle_(wanted) {
  if (!wanted) return;
  if (wanted->id != 0) {
    report_ = reports().find(wanted->id, call);
  } else {
    report_ = std::make_shared<report>();
    made_.id = reports().add(report_);
  }
}
report_place::~report_place() {
  if (made_.id != 0) error_of([&] { reports().remove(made_.id, ""); });
}
void report_place::keep() noexcept {
  if (made_.id != 0) handle_->id = std::exchange(made_.id, 0);
}

}  // namespace adasum::c

using namespace adasum::c;

extern "C" {

size_t adasum_report_contributions(adasum_report report) {
  return read_or<size_t>(0, report, __func__, [](const auto& r) { return r.contributions(); });
}
size_t adasum_report_segments(adasum_report report) {
  return read_or<size_t>(0, report, __func__, [](const auto& r) { return r.segments(); });
}
const char* adasum_report_rule(adasum_report report) {
  return read_or<const char*>("", report, __func__, [](const auto& r) { return r.rule().data(); });
}
const char* adasum_report_schedule(adasum_report report) {
  return read_or<const char*>("", report, __func__, [](const auto& r) { return r.schedule().data(); });
}
double adasum_report_orthogonality(adasum_report report, size_t segment_or_all) {
  return read_or(unknown, report, __func__, [=](const auto& r) {
    return segment_or_all == ADASUM_ALL_SEGMENTS ? r.orthogonality() : r.orthogonality(segment_or_all);
  });
}
double adasum_report_norm(adasum_report report, size_t contribution, size_t segment) {
  return read_or(unknown, report, __func__, [=](const auto& r) { return r.norm(contribution, segment); });
}
double adasum_report_weight(adasum_report report, size_t contribution, size_t segment) {
  return read_or(unknown, report, __func__, [=](const auto& r) { return r.weight(contribution, segment); });
}
double adasum_report_result_norm(adasum_report report, size_t segment) {
  return read_or(unknown, report, __func__, [=](const auto& r) { return r.result_norm(segment); });
}
int adasum_report_finite(adasum_report report) {
  return read_or(0, report, __func__, [](const auto& r) { return r.finite(); });
}
size_t adasum_report_excluded(adasum_report report, int* ranks, size_t room) {
  return read_or<size_t>(0, report, __func__, [&](const auto& r) {
    if (room > 0) require_pointer(ranks, "adasum_report_excluded", "ranks");
    const auto& excluded = r.excluded();
    std::copy_n(excluded.begin(), std::min(room, excluded.size()), ranks);
    return excluded.size();
  });
}
size_t adasum_report_json(adasum_report report, int64_t step, char* text, size_t room) {
  if (text && room > 0) *text = '\0';  // of a report that cannot be used, too
  return read_or<size_t>(0, report, __func__, [&](const auto& r) {
    if (room > 0) require_pointer(text, "adasum_report_json", "text");
    const std::string line = adasum::to_json(r, step);
    const auto length = line.size() - 1;  // without the end of the line
    if (room > 0) {
      const auto written = std::min(room - 1, length);
      std::memcpy(text, line.data(), written);
      text[written] = '\0';
    }
    return length;
  });
}
int adasum_report_free(adasum_report* report) {
  return error_of([&] {
    require_pointer(report, "adasum_report_free", "report");
    if (report->id == 0) return;
    reports().remove(report->id, "adasum_report_free");
    report->id = 0;
  });
}

}  // extern "C"
