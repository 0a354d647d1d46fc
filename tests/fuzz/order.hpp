// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include <adasum/adasum.hpp>

#include "input.hpp"

namespace adasum::fuzz {

/// Those from `halving` on only with floats in the serial space: each takes long to compile.
enum class call {
  allreduce,
  reduce_scatter,
  plan,
  plan_reduce_scatter,
  buckets,
  delta,
  halving,
  by_rule,
  by_node,
};
inline constexpr std::size_t calls = 9;

/// What one rank is told to do. Numbers are as a caller could give them: of any size, and adding up or not.
struct order {
  call what{};
  std::size_t type = 0;  // of the elements: float, double, 16 bits
  std::size_t length = 0;
  std::vector<long long> lengths, parts;  // of the segments (none: one of the whole gradient), of the ranks' parts
  std::optional<shard> mine;
  options choices{};
  std::size_t radix = 2;
  std::size_t threads = 0;  // of the space; none: the serial one
  std::size_t rule = 0, schedule = 0;
  double parameter = 0;  // of the rule, if it has one
  std::vector<int> nodes;
  bool inner_is_mean = false;
  std::size_t bucket_bytes = 0;
  bool in_buffer = false;                                            // the plan's own memory
  bool backwards = false, forgets_one = false, repeats_one = false;  // parameters that become ready
};

inline long long some_length(input& in) {
  switch (in.up_to(7)) {
    case 0: return -1 - static_cast<long long>(in.up_to(3));
    case 1: return in.number<long long>();
    default: return static_cast<long long>(in.up_to(20));
  }
}

/// Lengths that mostly add up to `rest`.
inline std::vector<long long> some_lengths(input& in, std::size_t count, long long rest) {
  std::vector<long long> lengths;
  for (std::size_t i = 0; i + 1 < count; ++i) {
    lengths.push_back(in.flag() ? rest / 2 : some_length(in));
    rest -= std::clamp(lengths.back(), 0LL, rest);
  }
  if (count > 0) lengths.push_back(in.up_to(5) == 0 ? some_length(in) : rest);
  return lengths;
}

/// The segments of a gradient of this length: one of all of it where no lengths are given.
/// @throws error  lengths that cannot be
inline segments segments_of(std::size_t length, const std::vector<long long>& lengths) {
  return lengths.empty() ? segments{length} : segments(lengths.begin(), lengths.end());
}

/// Small whole numbers, or odd ones: any that the type has.
template <class Number>
std::vector<double> some_gradient(input& in, std::size_t length, bool odd) {
  std::vector<double> gradient(length);
  for (auto& x : gradient) x = odd ? static_cast<double>(in.number<Number>()) : static_cast<double>(in.up_to(9)) - 4;
  return gradient;
}

inline std::optional<shard> some_shard(input& in) {
  if (!in.flag()) return {};
  shard found;
  found.replica = in.up_to(9) == 0 ? in.number<int>() : static_cast<int>(in.up_to(2));
  found.index = in.up_to(9) == 0 ? in.number<int>() : static_cast<int>(in.up_to(1));
  for (std::size_t count = in.up_to(2); count > 0; --count)
    found.replicated.push_back(in.up_to(9) == 0 ? in.number<std::size_t>() : in.up_to(3));
  return found;
}

/// One in so many has a value that its enumeration does not have.
inline options some_options(input& in) {
  const auto value_below = [&](std::size_t count) { return in.up_to(15) == 0 ? count : in.up_to(count - 1); };
  options found;
  found.check_agreement = in.flag();
  found.nonfinite = static_cast<nonfinite_policy>(value_below(3));
  found.wire = static_cast<wire_format>(value_below(3));
  found.measure = static_cast<measuring>(value_below(2));
  found.keep_plan = in.flag();
  return found;
}

inline order some_order(input& in, int ranks) {
  order found;
  found.what = static_cast<call>(in.up_to(calls - 1));
  found.type = in.up_to(2);
  found.length = in.up_to(40);
  found.lengths = some_lengths(in, in.up_to(4), static_cast<long long>(found.length));
  found.choices = some_options(in);
  found.threads = in.up_to(7) == 0 ? in.up_to(3) + (in.up_to(3) == 0 ? 5000 : 0) : 0;
  if (found.what >= call::halving && (found.type != 0 || found.threads != 0)) found.what = call::allreduce;
  switch (found.what) {
    case call::halving:
      found.mine = some_shard(in);
      found.radix = in.up_to(5);
      break;
    case call::by_rule:
      found.rule = in.up_to(4);
      found.schedule = in.up_to(2);
      found.radix = in.up_to(5);
      found.parameter = in.flag() ? in.number<double>() : static_cast<double>(in.up_to(8)) / 8;
      break;
    case call::reduce_scatter:
    case call::plan_reduce_scatter:
      found.parts = some_lengths(in, in.up_to(3) > 0 ? static_cast<std::size_t>(ranks) : in.up_to(4),
                                 static_cast<long long>(found.length));
      break;
    case call::buckets:
      found.bucket_bytes = in.up_to(3) == 0 ? in.number<std::size_t>() : in.up_to(100);
      found.backwards = in.flag();
      found.forgets_one = in.up_to(9) == 0;
      found.repeats_one = in.up_to(9) == 0;
      break;
    case call::by_node:
      for (std::size_t count = in.up_to(9) == 0 ? in.up_to(5) : static_cast<std::size_t>(ranks); count > 0; --count)
        found.nodes.push_back(in.up_to(9) == 0 ? in.number<int>() : static_cast<int>(in.up_to(2)));
      found.inner_is_mean = in.flag();
      found.radix = in.up_to(5);
      break;
    default: break;
  }
  found.in_buffer = in.flag();
  return found;
}

/// Whether all that one rank is told is as the documentation wants it, so that it must get a result where the others are told
/// the same. Shards are not looked at.
inline bool is_good(const order& one, std::size_t ranks) {
  const auto add_up = [&](const std::vector<long long>& lengths) {
    long long rest = static_cast<long long>(one.length);
    for (const auto length : lengths) {
      if (length < 0 || length > rest) return false;
      rest -= length;
    }
    return rest == 0;
  };
  const bool has_parts = one.what == call::reduce_scatter || one.what == call::plan_reduce_scatter;
  const bool has_radix = one.what == call::halving || one.what == call::by_node ||
                         (one.what == call::by_rule && one.schedule == 2 && one.rule < 2);
  return !one.mine && (one.lengths.empty() || add_up(one.lengths)) && one.threads <= 4096 &&
         one.choices.nonfinite <= nonfinite_policy::raise && one.choices.wire <= wire_format::binary16 &&
         one.choices.measure <= measuring::when_needed && (one.choices.wire == wire_format::same || one.type == 0) &&
         (!has_parts || one.parts.empty() || (one.parts.size() == ranks && add_up(one.parts))) &&
         (!has_radix || one.radix >= 2) && (one.what != call::by_node || one.nodes.size() == ranks) &&
         !one.forgets_one && !one.repeats_one;
}

}  // namespace adasum::fuzz
