// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "../../core/segments.hpp"

namespace adasum::detail {

struct call_signature;

/// Which ranks get the result of a reduction: every rank all of it (allreduce), or each its part (reduce_scatter). Does not
/// own the parts: calls pass it on before the ranks have met, when nothing may fail.
struct result_layout {
  bool in_parts = false;
  std::span<const std::size_t> offsets{};  ///< one boundary more than there are parts; none if these are even

  /// @throws bad_input  another number of parts than ranks, parts that do not add up to the gradient
  void require_valid(std::size_t length, int size, const std::string& call) const;

  /// What a rank gets of a result of so many elements. @pre is valid
  index_range wanted_by(std::size_t rank, std::size_t length, int size) const;
  /// The same for all ranks. Nothing if every rank gets everything.
  std::vector<index_range> wanted(std::size_t length, int size) const;

  /// What the ranks compare.
  void describe(call_signature& mine, std::size_t length, int size) const;

  /// Whether every rank gets the same by another one, however it was written. @pre is valid; the other one need not be
  bool gives_the_same_as(const result_layout& other, std::size_t length, int size) const;
};

/// How plans are called in messages.
struct plan_names {
  const char* type;
  const char* member;  ///< what its members begin with
  const char* buffer;  ///< one of these
  const char* maker;   ///< the call that makes one

  static constexpr plan_names of(bool in_parts) {
    if (in_parts)
      return {"adasum::reduce_scatter_plan", "adasum::reduce_scatter_plan::", "adasum::reduce_scatter_plan::buffer",
              "plan_reduce_scatter"};
    return {"adasum::allreduce_plan", "adasum::allreduce_plan::", "adasum::allreduce_plan::buffer", "plan_allreduce"};
  }
};

}  // namespace adasum::detail

#if ADASUM_DEFINITIONS
#include <array>

#include "../../core/error.hpp"
#include "../../schedules/partition.hpp"
#include "call_signature.hpp"

namespace adasum::detail {

ADASUM_INLINE void result_layout::require_valid(std::size_t length, int size, const std::string& call) const {
  if (offsets.empty()) return;
  const auto count = offsets.size() - 1, total = offsets.back();
  if (count != static_cast<std::size_t>(size))
    throw bad_input({call, ": ", counted(count, "part"), " for ", counted(size, "rank")});
  if (total != length)
    throw bad_input({call, ": the parts hold ", counted(total, "element"), " in all, the gradient has ", length});
}

ADASUM_INLINE index_range result_layout::wanted_by(std::size_t rank, std::size_t length, int size) const {
  if (!in_parts) return {0, length};
  if (offsets.empty()) return part_of({0, length}, static_cast<std::size_t>(size), rank);
  return {offsets[rank], offsets[rank + 1]};
}

ADASUM_INLINE std::vector<index_range> result_layout::wanted(std::size_t length, int size) const {
  std::vector<index_range> found;
  for (std::size_t rank = 0; in_parts && rank < static_cast<std::size_t>(size); ++rank)
    found.push_back(wanted_by(rank, length, size));
  return found;
}

ADASUM_INLINE void result_layout::describe(call_signature& mine, std::size_t length, int size) const {
  mine.set(mine.destination, in_parts ? "a part to each rank" : "every rank");
  std::string text;
  for (const auto [begin, end] : wanted(length, size)) {
    mine.parts_hash = hash(std::array{begin, end}, mine.parts_hash);
    if (text.size() < sizeof mine.parts) text += (text.empty() ? "" : ", ") + std::to_string(end - begin);
  }
  mine.set(mine.parts, text);
}

ADASUM_INLINE bool result_layout::gives_the_same_as(const result_layout& other, std::size_t length, int size) const {
  if (!in_parts || !other.in_parts) return in_parts == other.in_parts;
  const auto ranks = static_cast<std::size_t>(size);
  if (!other.offsets.empty() && other.offsets.size() != ranks + 1) return false;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    if (wanted_by(rank, length, size) != other.wanted_by(rank, length, size)) return false;
  return true;
}

}  // namespace adasum::detail
#endif
