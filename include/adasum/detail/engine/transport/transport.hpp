// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "../../../core/segments.hpp"
#include "../../../core/stage.hpp"
#include "../../../schedules/transfers.hpp"

/// How a stage's elements, and the small numbers that are added, get from rank to rank: by messages, or in memory that
/// the ranks share. The engine knows no difference.
namespace adasum::detail {

/// Whether a verb has done what it was asked, or waits for other ranks.
enum class progress { done, waits };

class transport;

/// A stage, and what carries it: bound when the plan is made.
struct bound_stage : stage {
  transfers to_combine{}, to_deliver{};
  transport* elements = nullptr;      ///< carries the members' vectors and the result
  transport* products = nullptr;      ///< adds inner products over sum_over
  std::size_t record_room = 0;        ///< elements behind each vector that is received, for records in its message
  std::size_t group = 0;              ///< in shared memory: which of the groups that meet; 0: all ranks that share it
  bool in_place = false;              ///< whether members work on each other's gradients where they lie
  std::vector<index_range> wanted{};  ///< in place: what each member gets of the result; empty: all of `held`

  /// What member i gets of these elements of the result.
  index_range wanted_by(std::size_t i, index_range some) const {
    if (wanted.empty()) return some;
    const auto clip = [&](std::size_t x) { return std::clamp(x, some.begin, some.end); };
    return {clip(wanted[i].begin), clip(wanted[i].end)};
  }
};

/// Each verb is called with `turn` 0 first, and while it waits, again with one more whenever arrived() has said that what
/// it waits for is there. `gradient` is the run's; positions are those of the whole vector. Once this rank has withdrawn from
/// a run, the verbs let nobody wait, and carry nothing.
class transport {
 public:
  virtual ~transport() = default;

  /// Every survivor can read its part of each member's vector: vector(). What is known of the gradients in it comes
  /// along.
  virtual progress bring(const bound_stage& stage, std::byte* gradient, std::size_t turn) = 0;
  /// Member i's elements of this rank's part. @pre bring is done
  virtual const std::byte* vector(const bound_stage& stage, std::size_t i, const std::byte* gradient) const = 0;
  /// Adds `values` over stage.sum_over, in place, with the same bits on each of these ranks.
  virtual progress sum(const bound_stage& stage, std::span<double> values, std::size_t turn) = 0;
  /// Every member gets all of the result on stage.held, or what it wants of that.
  virtual progress deliver(const bound_stage& stage, std::byte* gradient, std::size_t turn) = 0;

  /// Whether what the last verb waits for is there. @param block  wait until it is
  /// @throws communication_error  a rank failed or left
  virtual bool arrived(bool block) = 0;

  /// After how many elements of the last stage's result it wants to deliver them, while they are in the cache.
  virtual std::size_t elements_at_once(const bound_stage&) const { return std::numeric_limits<std::size_t>::max(); }
  /// These elements of the result, counted in the whole vector, have been written.
  virtual void deliver_early(const bound_stage&, std::byte*, index_range) {}
};

}  // namespace adasum::detail
