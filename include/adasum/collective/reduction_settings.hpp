// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

#include "../core/concepts.hpp"
#include "../core/gram.hpp"
#include "../core/options.hpp"
#include "../core/stage.hpp"
#include "../core/sum_order.hpp"

/// What a reduction is told when it is made, and how much room that takes.
namespace adasum::detail {

/// For schedules without an inner rule.
struct no_inner_rule {
  static constexpr std::string_view name = "none";
  pair_weights operator()(const pair_gram&) const { return {1, 1}; }
};

/// What the stages are, and how to go about them.
template <rule Inner>
struct reduction_settings {
  std::vector<stage> stages;
  std::string_view schedule_name;
  Inner inner;                    ///< for the stages marked so
  std::vector<int> leaf_ranks{};  ///< which rank's gradient is which leaf; empty: each its own
  bool measure = true;            ///< whether rules that need no Gram matrix are measured all the same
  nonfinite_policy nonfinite = nonfinite_policy::propagate;
  wire_format wire = wire_format::same;
  double patience_seconds = 60;
};

/// The sizes of the buffers that a rank needs for its stages.
struct buffer_sizes {
  buffer_sizes(const std::vector<stage>& stages, std::size_t segments) {
    for (const auto& level : stages) {
      const auto others = level.members.size() - 1;
      const auto own = level.survives() ? level.parts[level.self].size() : 0;
      members = std::max(members, others + 1);
      const auto products = segments * packed_size(others + 1);
      gram = std::max(gram, products);
      sum = std::max(sum, products * sum_order::most_received(level.sum_over.size(), sum_radix(others + 1)));
      received = std::max(received, others * own);
      packed = std::max({packed, sent_to_survivors(level), others * own});
      unpacked = std::max({unpacked, others * own, level.held.size()});
    }
  }

  /// Elements that a rank sends when its stage meets: the other survivors' parts.
  static std::size_t sent_to_survivors(const stage& level) {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < level.survivors; ++i)
      if (i != level.self) sum += level.parts[i].size();
    return sum;
  }

  std::size_t members = 1;               // the most ranks that meet
  std::size_t received = 0;              // elements of other members' vectors
  std::size_t packed = 0, unpacked = 0;  // elements of one exchange
  std::size_t gram = 0, sum = 0;         // doubles: of Gram matrices, and received when they are added
};

}  // namespace adasum::detail
