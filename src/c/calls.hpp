// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <adasum/communicators/any.hpp>
#include <adasum/core/options.hpp>
#include <adasum/core/parts.hpp>
#include <adasum/core/report.hpp>
#include <adasum/core/segments.hpp>
#include <adasum/detail/engine/run_once.hpp>
#include <adasum/detail/references/communicator_ref.hpp>
#include <adasum/detail/references/space_ref.hpp>
#include <adasum/rules/any_rule.hpp>

/// The calls of the library, for elements of a type that is known at run time.
namespace adasum::c {

/// What a call does, apart from its arrays.
struct request {
  const char* call = "";
  segments cut;
  rules::any_rule rule;
  basic_options<true> choices{.check_agreement = false};
  std::optional<shard> part;  // of a plan's gradients, if they are cut over several ranks
};

/// A type of elements: what the engine knows of it, and the calls on one process, which are templates.
struct element_type {
  std::string_view name;
  std::size_t alignment;
  const adasum::detail::space_table* of_space;  // of serial_space
  void (*pair)(const void* a, const void* b, void* out, std::size_t count, segments_view cut);
  report (*combine)(std::span<const void* const> gradients, void* out, std::size_t count, request& asked);
};

/// @throws bad_input  there is no such type
const element_type& element_type_of(int type, const char* call);

/// The ranks, for gradients in memory of the host.
adasum::detail::communicator_ref ranks_of(const any_communicator& comm);

/// A single call among ranks.
report allreduce(const any_communicator& comm, const element_type& type, void* data, std::size_t count,
                 const request& asked);

/// An allreduce_plan of any type and rule. Empty at first, so that whatever one rank alone may fail at comes before ranks meet.
class any_plan {
 public:
  /// Collective, once.
  void make(const any_communicator& comm, const element_type& type, const request& asked);
  /// The same where gradients are in memory of another space.
  void make(const adasum::detail::space_ref& where, const adasum::detail::communicator_ref& comm, const request& asked);

  const report& run(void* data, std::size_t count);
  void start(void* data, std::size_t count);
  bool test() { return held_->test(); }
  const report& wait() { return held_->wait(); }
  void* buffer();
  /// Something is wrong with this rank's array: takes no part in a run, and tells the others. Throws it, or wait() does.
  [[noreturn]] void refuse(const std::string& problem, const void* data);
  void refuse_start(const std::string& problem, const void* data);

 private:
  struct array {
    std::byte* elements;
    std::size_t count;
  };
  /// Where the others' gradients lie, as far as that of this rank tells.
  array where(const void* data) const;

  adasum::detail::plan_ptr held_;
  std::byte* buffer_ = nullptr;
};

}  // namespace adasum::c
