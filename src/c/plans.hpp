// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <adasum/adasum.h>

#include "calls.hpp"

namespace adasum::c {

/// What a handle of a plan stands for.
struct plan_entry {
  any_plan plan;
  const element_type* elements = nullptr;
  int type = 0;
};

/// Where a new plan goes: all that one rank alone may fail at comes first, so that nothing does once the ranks have met.
class plan_place {
 public:
  plan_place() = default;
  plan_place(const plan_place&) = delete;
  plan_place& operator=(const plan_place&) = delete;
  ~plan_place();

  void prepare(const element_type& elements, int type);
  /// Collective. @return the plan's handle
  std::uint64_t make(const any_communicator& comm, const request& asked);

 private:
  std::shared_ptr<plan_entry> entry_;
  std::uint64_t id_ = 0;
};

/// adasum_plan_run. @param wrong  what the caller knows to be wrong with the array; null: nothing
int run_plan(adasum_plan plan, void* data, std::size_t count, int type, adasum_report* report,
             const char* wrong) noexcept;
/// adasum_plan_start, likewise.
int start_plan(adasum_plan plan, void* data, std::size_t count, int type, const char* wrong) noexcept;
/// The same for an array that the caller knows to be unusable.
int refuse_start(adasum_plan plan, const char* problem) noexcept;
/// adasum_plan_buffer. @param type  null if the caller has none
int buffer_of_plan(adasum_plan plan, const int* type, void** buffer) noexcept;

}  // namespace adasum::c
