// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plans.hpp"

#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <adasum/adasum.h>

#include "arguments.hpp"
#include "communicators.hpp"
#include "errors.hpp"
#include "handles.hpp"
#include "reports.hpp"

namespace adasum::c {
namespace {

/// It stays until the process ends: MPI may be gone before static objects are destroyed, and a plan might be in flight.
handle_table<plan_entry>& plans() {
  static auto* const all = new handle_table<plan_entry>("plan");
  return *all;
}

std::shared_ptr<plan_entry> usable(adasum_plan plan, const char* call) {
  auto found = plans().find(plan.id, call);
  require_not_finalized(call);
  return found;
}

/// What is wrong with an array beside its length, which the plan looks at; empty if nothing.
std::string problem_with(const void* data, int type, const plan_entry& entry, const char* call) {
  if (type == entry.type) return problem_with_address(data, *entry.elements, call);
  std::string_view name = "of an unknown type";
  try {
    name = element_type_of(type, call).name;
  } catch (const bad_input&) {
  }
  return detail::joined({call, ": the elements are ", name, " (", type, "), those of the plan ", entry.elements->name,
                         " (", entry.type, ")"});
}

/// So short that a string holds it without memory of the heap.
constexpr const char* no_memory = "out of memory";

/// What find() returns or throws: what is wrong with this rank's arguments, empty if nothing. Where there is no memory to find
/// or to say it, that is what is wrong: the other ranks must hear of it, too.
template <class Find>
std::string problem_of(const Find& find) {
  try {
    try {
      return find();
    } catch (const bad_input& wrong) {
      return wrong.what();
    }
  } catch (const std::bad_alloc&) {
    return no_memory;
  }
}

/// Takes no part in a run, and tells the others. @throws what is wrong
void refuse(any_plan& plan, const std::string& problem, const void* data) {
  try {
    plan.refuse(problem, data);
  } catch (const bad_input&) {
    if (problem == no_memory) throw std::bad_alloc();
    throw;
  }
}

}  // namespace

plan_place::~plan_place() {
  if (id_ != 0) error_of([&] { plans().remove(id_, ""); });
}
void plan_place::prepare(const element_type& elements, int type) {
  entry_ = std::make_shared<plan_entry>(plan_entry{{}, &elements, type});
  id_ = plans().add(entry_);
}
std::uint64_t plan_place::make(const any_communicator& comm, const request& asked) {
  entry_->plan.make(comm, *entry_->elements, asked);
  return std::exchange(id_, 0);
}

int run_plan(adasum_plan plan, void* data, std::size_t count, int type, adasum_report* report,
             const char* wrong) noexcept {
  return error_of([&] {
    const auto entry = usable(plan, "adasum_plan_run");
    std::optional<report_place> place;
    const auto problem = problem_of([&]() -> std::string {
      place.emplace(report, "adasum_plan_run");
      if (wrong) return wrong;
      return problem_with(data, type, *entry, "adasum_plan_run");
    });
    if (!problem.empty()) refuse(entry->plan, problem, data);
    place->take(entry->plan.run(data, count));
  });
}

int start_plan(adasum_plan plan, void* data, std::size_t count, int type, const char* wrong) noexcept {
  return error_of([&] {
    const auto entry = usable(plan, "adasum_plan_start");
    const auto problem = problem_of([&]() -> std::string {
      if (wrong) return wrong;
      return problem_with(data, type, *entry, "adasum_plan_start");
    });
    if (!problem.empty())
      entry->plan.refuse_start(problem, data);
    else
      entry->plan.start(data, count);
  });
}

int refuse_start(adasum_plan plan, const char* problem) noexcept {
  return error_of([&] { usable(plan, "adasum_plan_start")->plan.refuse_start(problem, nullptr); });
}

int buffer_of_plan(adasum_plan plan, const int* type, void** buffer) noexcept {
  return error_of([&] {
    const auto entry = usable(plan, "adasum_plan_buffer");
    void* const found = entry->plan.buffer();  // collective: other errors come after
    require_pointer(buffer, "adasum_plan_buffer", "buffer");
    if (type && *type != entry->type) throw bad_input(problem_with(found, *type, *entry, "adasum_plan_buffer"));
    *buffer = found;
  });
}

}  // namespace adasum::c

using namespace adasum::c;

extern "C" {

int adasum_plan_run(adasum_plan plan, void* data, size_t count, int type, adasum_report* report) {
  return run_plan(plan, data, count, type, report, nullptr);
}

int adasum_plan_start(adasum_plan plan, void* data, size_t count, int type) {
  return start_plan(plan, data, count, type, nullptr);
}

int adasum_plan_test(adasum_plan plan, int* done) {
  return error_of([&] {
    const auto entry = usable(plan, "adasum_plan_test");
    require_pointer(done, "adasum_plan_test", "done");
    *done = entry->plan.test() ? 1 : 0;
  });
}

int adasum_plan_wait(adasum_plan plan, adasum_report* report) {
  return error_of([&] {
    const auto entry = usable(plan, "adasum_plan_wait");
    // The others wait for this rank: a report that cannot be written comes after.
    std::optional<report_place> place;
    std::exception_ptr problem;
    try {
      place.emplace(report, "adasum_plan_wait");
    } catch (...) {
      problem = std::current_exception();
    }
    const auto& found = entry->plan.wait();
    if (problem) std::rethrow_exception(problem);
    place->take(found);
  });
}

int adasum_plan_buffer(adasum_plan plan, void** buffer) { return buffer_of_plan(plan, nullptr, buffer); }

int adasum_plan_free(adasum_plan* plan) {
  return error_of([&] {
    require_pointer(plan, "adasum_plan_free", "plan");
    if (plan->id == 0) return;
    const auto last = plans().remove(plan->id, "adasum_plan_free");
    plan->id = 0;
  });
}

}  // extern "C"
