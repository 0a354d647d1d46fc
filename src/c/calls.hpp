// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <adasum/comm/any.hpp>
#include <adasum/core/options.hpp>
#include <adasum/core/report.hpp>
#include <adasum/core/segments.hpp>
#include <adasum/core/shard.hpp>
#include <adasum/rules/any_rule.hpp>

/// The calls of the library, for elements of a type that is known at run time. One source file for each type defines its own
/// (of_type.hpp), so that they are compiled apart.
namespace adasum::c {

/// What a call does, apart from its arrays.
struct request {
  const char* call = "";
  segments cut;
  rules::any_rule rule;
  basic_options<true> choices{.check_agreement = false};
  std::optional<shard> part;  // of a plan's gradients, if they are cut over several ranks
};

/// An allreduce_plan of any type and rule. Empty at first, so that whatever one rank alone may fail at comes before ranks meet.
class any_plan {
 public:
  virtual ~any_plan() = default;

  /// Collective. @param asked  for what it was made by calls_of_type::empty_plan
  virtual void make(const any_communicator& comm, const request& asked) = 0;

  virtual const report& run(void* data, std::size_t count) = 0;
  virtual void start(void* data, std::size_t count) = 0;
  virtual bool test() = 0;
  virtual const report& wait() = 0;
  virtual void* buffer() = 0;
  /// Something is wrong with this rank's array: takes no part in a run, and tells the others. Throws it, or wait() does.
  virtual void refuse(const std::string& problem, const void* data) = 0;
  virtual void refuse_start(const std::string& problem, const void* data) = 0;
};

/// The calls for one type.
class calls_of_type {
 public:
  virtual const char* name() const = 0;
  virtual std::size_t alignment() const = 0;

  virtual void pair(const void* a, const void* b, void* out, std::size_t count, segments_view cut) const = 0;
  virtual report combine(std::span<const void* const> gradients, void* out, std::size_t count,
                         const request& asked) const = 0;
  virtual report allreduce(const any_communicator& comm, void* data, std::size_t count, const request& asked) const = 0;
  virtual std::unique_ptr<any_plan> empty_plan(const request& asked) const = 0;

 protected:
  ~calls_of_type() = default;
};

const calls_of_type& calls_of_double();
const calls_of_type& calls_of_float();
const calls_of_type& calls_of_half();
const calls_of_type& calls_of_bfloat16();

/// @throws bad_input  there is no such type
const calls_of_type& calls_of(int type, const char* call);

}  // namespace adasum::c
