// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "profiler.hpp"

#include <cstddef>
#include <deque>
#include <string>

#include <adasum/core/environment.hpp>
#include <adasum/core/tracing.hpp>

namespace adasum::python {
namespace {

struct range {
  explicit range(const char* what) : name(std::string("adasum:") + what) {
    if (recorded.isActive()) recorded.before(name.c_str());
  }
  std::string name;
  at::RecordFunction recorded{at::RecordScope::USER_SCOPE};
};

thread_local bool is_recorded = false;
thread_local std::deque<range> open_ranges;

constexpr tracer for_profiler{[](const char* step, std::size_t) noexcept {
                                if (is_recorded) open_ranges.emplace_back(step);
                              },
                              []() noexcept {
                                if (is_recorded) open_ranges.pop_back();
                              }};

}  // namespace

bool profiler_is_asked_for() {
  const bool is_asked_for = !adasum::detail::environment("ADASUM_TORCH_PROFILER").empty();
  if (is_asked_for) set_tracer(&for_profiler);
  return is_asked_for;
}

profiler_of_thread profiler_of_thread::here() {
  profiler_of_thread found;
  if (at::hasCallbacks())
    found.recording_ = recording{c10::ThreadLocalDebugInfo::current(), at::get_record_function_tls_()};
  return found;
}

profiler_of_thread::guard::guard(const profiler_of_thread& other, const char* whole) {
  if (!other.recording_) return;
  info_.emplace(other.recording_->info);
  before_ = at::get_record_function_tls_();
  at::set_record_function_tls_(other.recording_->callbacks);
  is_recorded = true;
  open_ranges.emplace_back(whole);
}

profiler_of_thread::guard::~guard() {
  if (!before_) return;
  open_ranges.pop_back();
  is_recorded = false;
  at::set_record_function_tls_(*before_);
}

}  // namespace adasum::python
