// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include "../../core/report.hpp"
#include "../../core/segments.hpp"
#include "../references/space_ref.hpp"
#include "collective_setup.hpp"
#include "plan.hpp"

namespace adasum::detail {

/// Where a parameter's gradient is, and where the report on it is.
struct place_in_bucket {
  std::size_t bucket;    ///< in which bucket
  std::size_t segment;   ///< the first of its segments in its report
  index_range elements;  ///< of the bucket
  std::size_t report;    ///< which one of those that wait() returns
};

/// What a bucketed does, whatever its types; see there.
class buckets {
 public:
  /// @param space  must stay where it is
  explicit buckets(const space_ref& space) : space_(space) {}
  buckets(const buckets&) = delete;
  buckets& operator=(const buckets&) = delete;
  ~buckets();

  /// Once, before all else.
  /// @param given  of the plans, but for their segments. Under a rule that weighs the whole model, there is one bucket
  void set_up(collective_setup& together, std::span<const segments> parameters, std::size_t bucket_bytes,
              const plan_arguments& given);

  std::size_t parameters() const { return parameters_.size(); }
  std::size_t count() const { return buckets_.size(); }
  const place_in_bucket& place_of(std::size_t i, const char* call) const;
  std::byte* gradient(std::size_t i, const char* call) const;

  /// @param callers  where the gradient lies; null if it is in its bucket. @param length  of it
  void ready(std::size_t i, std::byte* callers, std::size_t length, bool is_callers);
  bool test();
  std::span<const report* const> wait();

 private:
  struct parameter {
    place_in_bucket at{};
    std::byte* callers = nullptr;  // where its gradient came from, and the result goes
    bool is_ready = false;
  };
  struct bucket {
    index_range parameters;
    plan_ptr plan{};
    std::byte* memory = nullptr;
    std::size_t missing = 0;  // parameters that are not ready
    std::size_t length = 0;
  };

  void fill(std::span<const segments> parameters, std::size_t bucket_bytes);
  void finish_one();
  void keep(std::exception_ptr problem);
  [[noreturn]] void refuse(bucket& one, const std::string& problem) const;
  std::string name_of(const bucket& one) const;
  std::string missing_in(const bucket& one) const;
  void copy(const std::byte* from, std::byte* to, std::size_t count) const;

  space_ref space_;
  bool posts_ = false;  // whether ready() may go on with reductions: else it would wait for other ranks
  std::vector<parameter> parameters_;
  std::vector<bucket> buckets_;
  std::vector<const report*> reports_;
  std::size_t at_ = 0;  // buckets before this one have been reduced
  bool is_in_pass_ = false;
  bool has_timed_out_ = false;  // a bucket of this pass
  std::exception_ptr error_;
};

}  // namespace adasum::detail

#if ADASUM_DEFINITIONS
#include <algorithm>
#include <limits>
#include <utility>

#include "../../core/error.hpp"
#include "call_signature.hpp"

namespace adasum::detail {

ADASUM_INLINE void buckets::set_up(collective_setup& together, std::span<const segments> parameters,
                                   std::size_t bucket_bytes, const plan_arguments& given) {
  posts_ = given.comm.can_post();
  parameters_.resize(parameters.size());
  fill(parameters, given.rule.weighs_whole_model() ? std::numeric_limits<std::size_t>::max() : bucket_bytes);
  if (buckets_.size() > 1 && given.schedule.inner_rule().weighs_whole_model())
    together.refuse(
        joined({"adasum::plan_bucketed: the inner rule of the schedule ", given.schedule.name(),
                " weighs the whole model, but is asked about one bucket at a time: let it weigh segments"}));
  for (auto& one : buckets_) {
    std::vector<std::size_t> lengths;
    for (const auto& own : parameters.subspan(one.parameters.begin, one.parameters.size()))
      for (std::size_t k = 0; k < own.size(); ++k) lengths.push_back(own.length(k));
    const segments cut(lengths);
    auto of_bucket = given;
    of_bucket.segments = cut;
    one.plan.reset(new plan(of_bucket, together));
    one.memory = one.plan->buffer(together);
    one.missing = one.parameters.size();
  }
  reports_.resize(buckets_.size());
  call_signature mine;  // all ranks have made the same number of buckets
  mine.set(mine.activity, "making buckets");
  mine.length = buckets_.size();
  together.meet(mine);
}

/// From the last parameter to the first.
ADASUM_INLINE void buckets::fill(std::span<const segments> parameters, std::size_t bucket_bytes) {
  const auto size = space_.element_size();
  for (std::size_t last = parameters.size(), first = last; last > 0; last = first) {
    std::size_t length = 0;
    do {
      length += parameters[--first].total();
    } while (first > 0 && (length + parameters[first - 1].total()) * size <= std::max(length * size, bucket_bytes));
    std::size_t segment = 0, begin = 0;
    for (auto i = first; i < last; ++i) {
      parameters_[i].at = {buckets_.size(), segment, {begin, begin + parameters[i].total()}, buckets_.size()};
      segment += parameters[i].size();
      begin += parameters[i].total();
    }
    buckets_.push_back({.parameters = {first, last}, .length = length});
  }
}

/// In the middle of a pass, does what wait() does, except that it writes to no gradient of the caller's.
ADASUM_INLINE buckets::~buckets() {
  if (!is_in_pass_) return;
  for (auto& one : parameters_) one.callers = nullptr;
  try {
    wait();
  } catch (...) {  // the other ranks know
  }
}

ADASUM_INLINE const place_in_bucket& buckets::place_of(std::size_t i, const char* call) const {
  if (i < parameters_.size()) return parameters_[i].at;
  throw bad_input(
      {"adasum::bucketed::", call, ": there is no parameter ", i, ", only ", parameters_.size(), ", numbered from 0"});
}

ADASUM_INLINE std::byte* buckets::gradient(std::size_t i, const char* call) const {
  const auto& at = place_of(i, call);
  return space_.at(buckets_[at.bucket].memory, at.elements.begin);
}

ADASUM_INLINE void buckets::ready(std::size_t i, std::byte* callers, std::size_t length, bool is_callers) {
  const auto& at = place_of(i, "ready");
  const auto name = [&] { return joined({"adasum::bucketed::ready: parameter ", i}); };
  auto& one = parameters_[i];
  if (one.is_ready) throw bad_input({name(), " is ready already; wait() ends the pass"});
  if (is_callers && length != at.elements.size())
    throw bad_input({name(), " has ", counted(at.elements.size(), "element"), ", its gradient ", length});
  if (is_callers && callers == nullptr && length > 0) throw bad_input({name(), ": its gradient is a null pointer"});
  is_in_pass_ = true;
  one.callers = callers;
  copy(callers, gradient(i, "ready"), at.elements.size());
  one.is_ready = true;
  --buckets_[at.bucket].missing;
  if (posts_) test();
}

ADASUM_INLINE bool buckets::test() {
  for (; at_ < buckets_.size(); ++at_) {
    auto& one = buckets_[at_];
    if (!one.plan->is_in_flight()) {
      if (one.missing > 0) return false;
      one.plan->start(one.memory, one.length, {});
    }
    if (!one.plan->test()) return false;
    finish_one();
  }
  return true;
}

ADASUM_INLINE std::span<const report* const> buckets::wait() {
  for (; at_ < buckets_.size(); ++at_) finish_one();
  at_ = 0;
  is_in_pass_ = has_timed_out_ = false;
  for (auto& one : parameters_) one.is_ready = false;
  for (auto& one : buckets_) one.missing = one.parameters.size();
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  return reports_;
}

/// The reduction of the bucket at_ is ended, or refused if it cannot begin. What it throws is kept.
ADASUM_INLINE void buckets::finish_one() {
  auto& one = buckets_[at_];
  try {
    if (one.missing > 0) refuse(one, missing_in(one));
    if (has_timed_out_) refuse(one, "adasum::bucketed::wait: an earlier bucket has timed out");
    if (!one.plan->is_in_flight()) one.plan->start(one.memory, one.length, {});
    reports_[at_] = &one.plan->wait();
    for (auto i = one.parameters.begin; i < one.parameters.end; ++i)
      copy(gradient(i, "wait"), parameters_[i].callers, parameters_[i].at.elements.size());
  } catch (const timeout_error&) {  // the rank that did not come is missing in the other buckets, too
    has_timed_out_ = true;
    keep(std::current_exception());
  } catch (const nonfinite_error& problem) {
    keep(exception_from([&] { return nonfinite_error(problem.what() + (", in " + name_of(one))); }));
  } catch (...) {
    keep(std::current_exception());
  }
}

ADASUM_INLINE void buckets::keep(std::exception_ptr problem) {
  if (!error_) error_ = std::move(problem);
}

/// As if this rank's gradient had been found to be wrong.
ADASUM_INLINE void buckets::refuse(bucket& one, const std::string& problem) const {
  one.plan->run(one.memory, one.length, problem);
  throw bad_input(problem);
}

/// For errors that count segments from the first one in the bucket.
ADASUM_INLINE std::string buckets::name_of(const bucket& one) const {
  const auto [first, last] = one.parameters;
  return joined({"bucket ", &one - buckets_.data(), " (parameter ", first,
                 last - first > 1 ? " to " + std::to_string(last - 1) : "", ")"});
}

ADASUM_INLINE std::string buckets::missing_in(const bucket& one) const {
  auto i = one.parameters.begin;
  while (parameters_[i].is_ready) ++i;
  return joined({"adasum::bucketed::wait: parameter ", i, " is not ready"});
}

/// Nothing where either is not there, or both are the same.
ADASUM_INLINE void buckets::copy(const std::byte* from, std::byte* to, std::size_t count) const {
  if (from == nullptr || to == nullptr || count == 0 || from == to) return;
  space_.copy(from, to, count);
  space_.fence();
}

}  // namespace adasum::detail
#endif
