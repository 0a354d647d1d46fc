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

/// Which ranks get the result of a reduction. Does not own the parts: calls pass it on before the ranks have met, when
/// nothing may fail.
class destination {
 public:
  enum class kind {
    every_rank,    ///< allreduce
    part_of_each,  ///< reduce_scatter
    one_rank,      ///< reduce
  };

  destination() = default;
  /// Each rank gets its part, as nearly equal as can be.
  static destination in_even_parts() { return destination(kind::part_of_each); }
  /// Each rank gets its part. @param offsets  one boundary more than there are parts
  static destination in_parts(std::span<const std::size_t> offsets) {
    destination found(kind::part_of_each);
    found.offsets_ = offsets;
    return found;
  }
  static destination at(int root) {
    destination found(kind::one_rank);
    found.root_ = root;
    return found;
  }

  /// The parts' boundaries; none if they are even.
  std::span<const std::size_t> offsets() const { return offsets_; }
  /// The same, looking at a copy of the boundaries.
  destination with(std::span<const std::size_t> copy) const {
    auto found = *this;
    found.offsets_ = copy;
    return found;
  }

  kind what() const { return what_; }
  bool is_every_rank() const { return what_ == kind::every_rank; }
  int root() const { return root_; }

  /// @throws bad_input  another number of parts than ranks, parts that do not add up to the gradient, no such root
  void require_valid(std::size_t length, int size, const std::string& call) const;

  /// What a rank gets of a result of so many elements. @pre is valid
  index_range wanted_by(std::size_t rank, std::size_t length, int size) const;
  /// The same for all ranks. Nothing if every rank gets everything.
  std::vector<index_range> wanted(std::size_t length, int size) const;

  /// What the ranks compare.
  void describe(call_signature& mine, std::size_t length, int size) const;

  /// Whether every rank gets the same by another one, however it was written. @pre is valid; the other one need not be
  bool gives_the_same_as(const destination& other, std::size_t length, int size) const;

  /// How plans for it are called in messages.
  struct plan_names {
    const char* type;
    const char* member;  ///< what its members begin with
    const char* buffer;  ///< one of these
    const char* maker;   ///< the call that makes one
  };
  static constexpr plan_names names_of(kind what) {
    switch (what) {
      case kind::every_rank: break;
      case kind::part_of_each:
        return {"adasum::reduce_scatter_plan", "adasum::reduce_scatter_plan::", "adasum::reduce_scatter_plan::buffer",
                "plan_reduce_scatter"};
      case kind::one_rank:
        return {"adasum::reduce_plan", "adasum::reduce_plan::", "adasum::reduce_plan::buffer", "plan_reduce"};
    }
    return {"adasum::allreduce_plan", "adasum::allreduce_plan::", "adasum::allreduce_plan::buffer", "plan_allreduce"};
  }
  plan_names names() const { return names_of(what_); }

 private:
  explicit destination(kind what) : what_(what) {}

  kind what_ = kind::every_rank;
  std::span<const std::size_t> offsets_;
  int root_ = 0;
};

}  // namespace adasum::detail

#if ADASUM_DEFINITIONS
#include <array>
#include <cstdint>

#include "../../core/error.hpp"
#include "../../schedule/partition.hpp"
#include "call_signature.hpp"

namespace adasum::detail {

ADASUM_INLINE void destination::require_valid(std::size_t length, int size, const std::string& call) const {
  if (what_ == kind::one_rank && (root_ < 0 || root_ >= size))
    throw bad_input({call, ": the root is rank ", root_, ", but the communicator has ", counted(size, "rank")});
  if (offsets_.empty()) return;
  const auto count = offsets_.size() - 1, total = offsets_.back();
  if (count != static_cast<std::size_t>(size))
    throw bad_input({call, ": ", counted(count, "part"), " for ", counted(size, "rank")});
  if (total != length)
    throw bad_input({call, ": the parts hold ", counted(total, "element"), " in all, the gradient has ", length});
}

ADASUM_INLINE index_range destination::wanted_by(std::size_t rank, std::size_t length, int size) const {
  const index_range all{0, length};
  switch (what_) {
    case kind::every_rank: break;
    case kind::one_rank: return rank == static_cast<std::size_t>(root_) ? all : index_range{};
    case kind::part_of_each:
      if (offsets_.empty()) return part_of(all, static_cast<std::size_t>(size), rank);
      return {offsets_[rank], offsets_[rank + 1]};
  }
  return all;
}

ADASUM_INLINE std::vector<index_range> destination::wanted(std::size_t length, int size) const {
  std::vector<index_range> found;
  if (is_every_rank()) return found;
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(size); ++rank)
    found.push_back(wanted_by(rank, length, size));
  return found;
}

ADASUM_INLINE void destination::describe(call_signature& mine, std::size_t length, int size) const {
  switch (what_) {
    case kind::every_rank: mine.set(mine.destination, "every rank"); break;
    case kind::one_rank: mine.set(mine.destination, "one rank"); break;
    case kind::part_of_each: mine.set(mine.destination, "a part to each rank"); break;
  }
  if (what_ == kind::one_rank) mine.root = static_cast<std::uint64_t>(root_);
  if (what_ != kind::part_of_each) return;
  std::string text;
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(size); ++rank) {
    const auto [begin, end] = wanted_by(rank, length, size);
    mine.parts_hash = hash(std::array{begin, end}, mine.parts_hash);
    if (text.size() < sizeof mine.parts) text += (rank == 0 ? "" : ", ") + std::to_string(end - begin);
  }
  mine.set(mine.parts, text);
}

ADASUM_INLINE bool destination::gives_the_same_as(const destination& other, std::size_t length, int size) const {
  if (what_ != other.what_ || root_ != other.root_) return false;
  if (what_ != kind::part_of_each) return true;
  const auto ranks = static_cast<std::size_t>(size);
  if (!other.offsets_.empty() && other.offsets_.size() != ranks + 1) return false;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    if (wanted_by(rank, length, size) != other.wanted_by(rank, length, size)) return false;
  return true;
}

}  // namespace adasum::detail
#endif
