// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "../../core/tree_order.hpp"
#include "../../core/weigh.hpp"
#include "../references/rule_ref.hpp"
#include "../references/space_ref.hpp"
#include "../references/sums_table.hpp"
#include "combine_window.hpp"

/// The tree of many vectors in groups: the vectors of each group are measured among each other and weighed along their
/// subtree; then the sums that these weights make are measured and weighed along the rest of the tree. So n vectors need
/// far fewer inner products than their Gram matrix has: in groups of 8, 32 vectors need 4 · 36 + 10 in place of 528.
///
/// Sums are kept in double, so that they are as good as the vectors that they are made of: what a rule is told of two nodes
/// is as accurate as from the Gram matrix, and the result is rounded to its type at the end only.
namespace adasum::detail {

/// When and how vectors are combined in groups: the one place where that is chosen, by measurements of bench/tree.cpp. It
/// depends on the segments and the number of vectors alone, so that every space combines alike.
struct grouping {
  /// Vectors of a group at most. Of very many vectors there are no more than some 64 groups.
  static constexpr std::size_t most_leaves(std::size_t vectors) { return std::max<std::size_t>(8, vectors / 64); }

  /// Bytes of the sums of a segment that are kept from when they are measured until they are mixed. Of longer segments,
  /// sums are made for a part of the elements at a time, and measured; what is mixed are the vectors once more. That is one
  /// more pass over these, which takes less time than memory in which nothing has been written before.
  static constexpr std::size_t kept_bytes = std::size_t{8} << 20;
  static constexpr bool are_kept(std::size_t sums, std::size_t length) {
    return length <= kept_bytes / (sums * sizeof(double));
  }
  /// Elements of such a part: many, since vectors are read faster in long pieces, but its sums stay in a cache.
  static constexpr std::size_t part_length(std::size_t sums) {
    return std::max<std::size_t>((std::size_t{1} << 20) / (sums * sizeof(double)), 2048);
  }

  /// Whether it takes less time than the Gram matrix of all vectors: where the inner products that are saved, n(n - 8)/2
  /// for each element or so, outweigh the calls that are made for each of the n vectors.
  static bool pays(std::size_t vectors, segments_view segments) {
    return vectors >= 12 && segments.all().size() / std::max<std::size_t>(segments.size(), 1) * (vectors - 8) >= 8192;
  }
  /// Whether it then does for every segment, however long: of more than a few vectors.
  static constexpr bool takes_all(std::size_t vectors) { return vectors > 16; }
  /// Whether it does for a segment of so many elements where it does for most: of few vectors, if no pass is added.
  static constexpr bool pays_for(std::size_t vectors, std::size_t sums, std::size_t length) {
    return takes_all(vectors) || are_kept(sums, length);
  }
};

/// Measure → weigh → mix of a round, in groups.
class combination_in_groups {
 public:
  /// @param leaf_counts  how many gradients each vector already combines
  /// @param segments     all of them
  /// @param in_round     how many of them a round has at most
  combination_in_groups(const space_ref& space, const sums_table& in_double, const rule_ref& rule, vector_list vectors,
                        std::span<const std::size_t> leaf_counts, segments_view segments, std::size_t in_round,
                        const weighing_limits& limits)
      : space_(space),
        in_double_(in_double),
        rule_(rule),
        vectors_(vectors),
        leaf_counts_(leaf_counts),
        limits_(limits),
        groups_(vectors.size(), grouping::most_leaves(vectors.size())),
        gram_(in_round * packed_size(std::max(groups_.largest(), groups_.size()))),
        part_gram_(in_round * packed_size(groups_.size())),
        weights_(in_round * groups_.size()),
        masses_(in_round * groups_.size()),
        norms_(in_round * vectors.size()),
        result_norms_(in_round),
        weights_of_groups_(in_round * vectors.size()),
        of_squares_(in_round),
        of_nodes_(in_round),
        scratch_(std::max(groups_.largest(), groups_.size())),
        shifted_(vectors.size()),
        of_part_(vectors.size()),
        sums_(groups_.size()),
        capacity_(capacity_for(segments)),
        memory_(in_double.allocate(space.object(), capacity_ * groups_.size())) {}

  /// Whether the segments of a round are to be combined in groups. (Those that are too long share no round.)
  bool pays_for(const slice& window) const {
    return grouping::pays_for(vectors_.size(), groups_.size(), window.range.size());
  }

  /// Combines the segments of the round that inner products can decide.
  /// @param arrays   receives the weights, and which segments are unsettled
  /// @param all      the segments of all rounds
  /// @param observe  observe(k, segment_outcome) for each that is settled
  void run(const slice& window, const round_memory& arrays, segments_view all, std::byte* out,
           segment_observer observe) {
    weigh(window, arrays, all);
    for_each_settled(arrays, false, [&](std::size_t k) {
      const auto n = vectors_.size();
      observe(k, segment_outcome{std::span(norms_).subspan(k * n, n), arrays.weights_of(k), result_norms_[k], false});
    });
    mix(window, arrays, out, bytes_of(space_, vectors_.size(), all));
  }

 private:
  void weigh(const slice& window, const round_memory& arrays, segments_view all) {
    count_ = window.segments.size();
    const auto length = window.range.size();
    keeps_ = length <= capacity_ &&
             (grouping::are_kept(groups_.size(), length) || length <= grouping::part_length(groups_.size()));
    for (std::size_t i = 0; i < vectors_.size(); ++i)
      shifted_[i] = space_.at(vectors_[i], window.range.begin - window.origin);
    std::ranges::fill(of_squares_, weighing::good);
    std::ranges::fill(of_nodes_, weighing::good);
    const slice here{window.segments, window.range, window.range.begin};
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      measure_group(g, here, all);
      for (std::size_t k = 0; k < count_; ++k) weigh_group(g, k);
      if (keeps_) add_up(g, here, shifted_);
    }
    measure_sums(here);
    arrays.unsettled.clear();
    for (std::size_t k = 0; k < count_; ++k) weigh_sums(k, arrays);
  }

  /// The segments that are settled. @param bytes  of all vectors together in all rounds
  void mix(const slice& window, const round_memory& arrays, std::byte* out, std::size_t bytes) {
    if (!keeps_) return mix_window(space_, rule_, window, vectors_, arrays, out, {}, bytes);
    const auto sums = sums_of(window.range.size());
    std::byte* const to = space_.at(out, window.range.begin - window.origin);
    for_each_settled_run(arrays, [&](std::size_t first, std::size_t last) {
      const slice here = slice{window.segments, window.range, window.range.begin}.part(first, last - first);
      in_double_.mix(space_.object(), here, sums, weights_.data() + first * groups_.size(), to);
    });
  }

  /// Elements of each group's sum for which there is memory.
  std::size_t capacity_for(segments_view segments) const {
    std::size_t longest = grouping::part_length(groups_.size());
    for (std::size_t k = 0; k < segments.size(); ++k)
      if (const auto length = segments.range(k).size(); grouping::are_kept(groups_.size(), length))
        longest = std::max(longest, length);
    return whole_lines(std::min(longest, segments.all().size()));
  }
  /// Sums begin on cache lines.
  static constexpr std::size_t whole_lines(std::size_t length) { return (length + 7) / 8 * 8; }
  double* sum(std::size_t group, std::size_t length) {
    return reinterpret_cast<double*>(memory_.data()) + group * whole_lines(length);
  }
  vector_list sums_of(std::size_t length) {
    for (std::size_t g = 0; g < groups_.size(); ++g) sums_[g] = sum(g, length);
    return sums_;
  }

  double* weights_of_group(std::size_t group, std::size_t k) {
    const auto [first, last] = groups_.leaves(group);
    return weights_of_groups_.data() + count_ * first + k * (last - first);
  }

  void measure_group(std::size_t group, const slice& here, segments_view all) {
    const auto [first, last] = groups_.leaves(group);
    const auto some = vector_list(shifted_).subspan(first, last - first);
    measure_round(rule_, space_, here, some, gram_.data(), all);
  }

  void weigh_group(std::size_t group, std::size_t k) {
    const auto [first, last] = groups_.leaves(group);
    const auto n = last - first;
    const gram_view gram(gram_.data() + k * packed_size(n), n);
    double* const weights = weights_of_group(group, k);
    for (std::size_t i = 0; i < n; ++i) norms_[k * vectors_.size() + first + i] = std::sqrt(gram.row(i)[i]);
    const auto squares = weighing_of_squares(gram, limits_.largest_square);
    if (squares != weighing::good) {
      if (of_squares_[k] != weighing::needs_vectors) of_squares_[k] = squares;
      return std::fill_n(weights, n, 0.0), void();  // its sum does not matter
    }
    const tree_nodes nodes = scratch_;
    for (std::size_t i = 0; i < n; ++i) {
      weights[i] = 1;
      nodes.norm2[i] = nodes.mass[i] = gram(i, i);
      nodes.leaves[i] = leaf_counts_[first + i];
    }
    if (weigh_merges(gram, groups_.within(group), weights).quality != weighing::good)
      of_nodes_[k] = weighing::needs_vectors;
    masses_[k * groups_.size() + group] = nodes.mass[0];
  }

  /// What scratch_ says of the leaves becomes what is known of the nodes.
  tree_weighing<const rule_ref> weigh_merges(gram_view gram, std::span<const tree_groups::merge> merges,
                                             double* weights) {
    tree_weighing<const rule_ref> state{rule_, gram, weights, scratch_, limits_, cancelled_node::needs_vectors};
    for (const auto& m : merges) state(m.first, m.middle, m.last);
    return state;
  }

  /// The sum of a group. @param from  its vectors at the origin
  void add_up(std::size_t group, const slice& here, vector_list from) {
    const auto [first, last] = groups_.leaves(group);
    in_double_.add_up(space_.object(), here, from.subspan(first, last - first), weights_of_group(group, 0),
                      sum(group, here.range.size()));
  }

  /// The Gram matrices of the groups' sums.
  void measure_sums(const slice& here) {
    if (keeps_) {
      in_double_.measure(space_.object(), here, sums_of(here.range.size()), gram_.data());
      return space_.fence();
    }
    const auto entries = count_ * packed_size(groups_.size());
    std::fill_n(gram_.begin(), entries, 0.0);
    // From the end: what has been read last is in the last cache then; and so is the beginning when all is mixed.
    for (auto end = here.range.end; end > here.range.begin;) {
      const auto begin = end - std::min(grouping::part_length(groups_.size()), end - here.range.begin);
      const slice part{here.segments, {begin, end}, begin};
      for (std::size_t i = 0; i < shifted_.size(); ++i) of_part_[i] = space_.at(shifted_[i], begin - here.origin);
      for (std::size_t g = 0; g < groups_.size(); ++g) add_up(g, part, of_part_);
      in_double_.measure(space_.object(), part, sums_of(end - begin), part_gram_.data());
      space_.fence();
      for (std::size_t x = 0; x < entries; ++x) gram_[x] += part_gram_[x];
      end = begin;
    }
  }

  void weigh_sums(std::size_t k, const round_memory& arrays) {
    const auto n = groups_.size();
    const gram_view gram(gram_.data() + k * packed_size(n), n);
    const auto weights = std::span(weights_).subspan(k * n, n);
    auto quality = of_squares_[k] == weighing::good ? of_nodes_[k] : of_squares_[k];
    std::ranges::fill(weights, quality == weighing::nonfinite ? std::numeric_limits<double>::quiet_NaN() : 1);
    if (quality == weighing::good) {
      const tree_nodes nodes = scratch_;
      for (std::size_t g = 0; g < n; ++g) {
        nodes.norm2[g] = gram(g, g);
        nodes.mass[g] = masses_[k * n + g];
        const auto [first, last] = groups_.leaves(g);
        const auto counts = leaf_counts_.subspan(first, last - first);
        nodes.leaves[g] = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
      }
      auto state = weigh_merges(gram, groups_.above(), weights.data());
      state.settle(0, n, limits_.root);
      quality = state.quality;
    }
    if (quality == weighing::needs_vectors) arrays.unsettled.push_back(k);
    for (std::size_t g = 0; g < n; ++g) {
      const auto [first, last] = groups_.leaves(g);
      for (auto i = first; i < last; ++i) arrays.weights_of(k)[i] = weights[g] * weights_of_group(g, k)[i - first];
    }
    result_norms_[k] = std::sqrt(squared_norm(gram, weights));
  }

  space_ref space_;
  const sums_table& in_double_;
  rule_ref rule_;
  vector_list vectors_;
  std::span<const std::size_t> leaf_counts_;
  weighing_limits limits_;
  tree_groups groups_;
  // By segment: the Gram matrices of a group, and then of the groups' sums; of a part of these; the sums' weights; see
  // tree_nodes, for each group; and for the report.
  std::vector<double> gram_, part_gram_, weights_, masses_, norms_, result_norms_;
  std::vector<double> weights_of_groups_;  // by group, and then by segment
  // By segment: what the squares alone say, as weighing_of_squares does of all; and what the groups' nodes say.
  std::vector<weighing> of_squares_, of_nodes_;
  weigh_scratch scratch_;
  std::vector<const void*> shifted_, of_part_;  // the vectors, at the first element of the round, or of a part of it
  std::vector<const void*> sums_;
  std::size_t capacity_;
  space_memory memory_;  // the sums
  // Of the round: how many segments it has, and whether all elements of their sums are there.
  std::size_t count_ = 0;
  bool keeps_ = false;
};

}  // namespace adasum::detail
