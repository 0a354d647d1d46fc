// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "../../core/concepts.hpp"
#include "../../core/optional_members.hpp"
#include "../local/combine_window.hpp"
#include "allgather.hpp"
#include "exclusion.hpp"
#include "row_sum_measures.hpp"
#include "row_sum_weights.hpp"

namespace adasum::detail {

/// The norms and projections of every rank's gradient, and the weights that a row_sum_rule makes of them: measured by each
/// rank on its own, gathered by all, weighed by each of them alike.
///
/// A rank's block: ‖gᵢ‖ of each segment, and behind them gᵢ·ḡ / ‖gᵢ‖ of each segment or of the whole model; no such
/// projections for a rule of norms alone. Holds 8 bytes for each number of a block, for each rank, and as many weights.
template <scalar T, execution_space<T> Space, row_sum_rule Rule>
class row_sums_of_ranks {
 public:
  /// @param space, segments  must outlive this object
  row_sums_of_ranks(const Space& space, const Rule& rule, segments_view segments, std::size_t ranks)
      : count_(segments.size()),
        ranks_(ranks),
        rows_(weighs_whole_model(rule) ? std::min<std::size_t>(count_, 1) : count_),
        measures_(space, segments),
        weigher_(ranks),
        projections_(count_),
        mine_(count_ + (needs_row_sums<Rule> ? rows_ : 0)),
        all_(ranks * mine_.size()),
        norms_(ranks * count_),
        weights_(ranks * count_) {}

  /// This rank's block. @param gradient  null: it takes no part, and counts as zero
  /// @param mean  null for a rule of norms alone
  void measure(const T* gradient, const T* mean) {
    if (!gradient) return std::ranges::fill(mine_, 0.0), void();
    const auto norms = std::span(mine_).first(count_);
    if constexpr (needs_row_sums<Rule>) {
      measures_.measure(gradient, mean, norms, projections_);
      if (rows_ == count_)
        std::ranges::copy(projections_, mine_.begin() + static_cast<std::ptrdiff_t>(count_));
      else
        mine_[count_] = projection_of_all(norms);
    } else {
      measures_.measure(gradient, norms);
    }
  }
  /// Norms of another vector's segments.
  void measure_norms(const T* vector, std::span<double> norms) { measures_.measure(vector, norms); }

  /// Every rank's block, to all ranks.
  allgather exchanges(int rank, int size) {
    return {std::as_bytes(std::span(mine_)), rank, size, std::as_writable_bytes(std::span(all_))};
  }

  /// After these exchanges. @param leaf_ranks  which rank's gradient is which leaf; empty: each its own
  void weigh(Rule& rule, std::span<const int> leaf_ranks, const exclusion& excluded) {
    const auto rank_of = [&](std::size_t leaf) {
      return leaf_ranks.empty() ? leaf : static_cast<std::size_t>(leaf_ranks[leaf]);
    };
    const auto takes_part = [&](std::size_t leaf) { return excluded.of_rank(static_cast<int>(rank_of(leaf))); };
    for (std::size_t leaf = 0; leaf < ranks_; ++leaf)
      std::ranges::copy(block_of(rank_of(leaf)).first(count_), of_leaf(norms_, leaf).begin());
    for (std::size_t row = 0; row < rows_; ++row) {
      weigher_.clear();
      for (std::size_t leaf = 0; leaf < ranks_; ++leaf) {
        if (!takes_part(leaf)) continue;
        const auto norms = of_leaf(norms_, leaf);
        weigher_.add(rows_ == count_ ? norms[row] : norm_of_norms(norms),
                     needs_row_sums<Rule> ? block_of(rank_of(leaf))[count_ + row] : 0);
      }
      auto weight = weigher_.weigh(rule, row).begin();
      for (std::size_t leaf = 0; leaf < ranks_; ++leaf) {
        const auto weights = of_leaf(weights_, leaf);
        std::ranges::fill(rows_ == count_ ? weights.subspan(row, 1) : weights, takes_part(leaf) ? *weight++ : 0);
      }
    }
  }

  double norm(std::size_t leaf, std::size_t segment) const { return norms_[leaf * count_ + segment]; }
  double weight(std::size_t leaf, std::size_t segment) const { return weights_[leaf * count_ + segment]; }

 private:
  std::span<const double> block_of(std::size_t rank) const {
    return std::span(all_).subspan(rank * mine_.size(), mine_.size());
  }
  std::span<double> of_leaf(std::vector<double>& values, std::size_t leaf) const {
    return std::span(values).subspan(leaf * count_, count_);
  }
  double projection_of_all(std::span<const double> norms) const {
    const double norm = norm_of_norms(norms);
    double sum = 0;
    for (std::size_t k = 0; k < count_; ++k)
      if (norms[k] > 0) sum += norms[k] / norm * projections_[k];
    return sum;
  }

  std::size_t count_, ranks_;
  std::size_t rows_;  // how many sets of weights there are
  row_sum_measures<T, Space> measures_;
  row_sum_weights<Rule> weigher_;
  std::vector<double> projections_;      // of this rank's gradient, by segment
  std::vector<double> mine_, all_;       // this rank's block; every rank's, by rank
  std::vector<double> norms_, weights_;  // by leaf and segment
};

}  // namespace adasum::detail
