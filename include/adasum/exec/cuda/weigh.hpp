// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cuda_runtime.h>

#include <cstddef>
#include <string_view>

#include "../../core/concepts.hpp"
#include "../../core/gram.hpp"
#include "../../core/optional_members.hpp"
#include "../../core/weigh.hpp"

/// Weights on the device, so that the host need not wait for inner products.
///
/// The rule is applied along the tree as everywhere (weigh_along_tree). What cannot be asked here is another look at
/// the vectors: a node of which the Gram matrix says no more than that it may be zero (its squared norm is below 2⁻⁴⁸
/// of its terms') is weighed as zero; vectors that cancel to less than 2⁻²⁴ of that keep weights of few digits, where the
/// host would combine them vector by vector; and a segment whose squares leave the range of double (elements of 1e±120 and
/// beyond) gets NaN.
namespace adasum::detail::cuda {

/// A rule as kernels call it. Where a rule is for the host alone, the error points here: mark its operator()
/// ADASUM_HOST_DEVICE.
template <class Rule>
struct rule_on_device {
  static constexpr std::string_view name = "rule on a device";
  static constexpr inner_products needs = needs_of<Rule>;

  Rule& rule;
  __device__ pair_weights operator()(const pair_gram& gram) { return rule(gram); }
};

/// Weights of one segment from its packed Gram matrix.
/// @param leaves   how many gradients each vector combines; null: one
/// @param weights  receives one for each vector
template <class Rule>
__device__ inline void weigh_gram(Rule& rule, gram_view gram, const double* leaves, double* weights, tree_nodes nodes) {
  const auto n = gram.size();
  if (weighing_of_squares(gram) != weighing::good) {
    for (std::size_t i = 0; i < n; ++i) weights[i] = __longlong_as_double(0x7ff8000000000000);  // NaN
    return;
  }
  for (std::size_t i = 0; i < n; ++i) nodes.leaves[i] = leaves ? static_cast<std::size_t>(leaves[i]) : 1;
  rule_on_device<Rule> here{rule};
  weigh_along_tree(here, gram, nodes.leaves, weights, nodes,
                   {vanishing_threshold, vanishing_threshold, largest_safe_square}, cancelled_node::is_zero);
}

/// The same where n is small and the nodes of the tree fit on a thread's stack.
template <int Count, class Rule>
__device__ inline void weigh_few(Rule& rule, gram_view gram, const double* leaves, double* weights) {
  double norm2[Count], mass[Count];
  std::size_t counts[Count];
  weigh_gram(rule, gram, leaves, weights, {norm2, mass, counts});
}

/// Doubles of memory that weigh_segments needs for its trees.
constexpr std::size_t scratch_for_trees(std::size_t segments, std::size_t n) { return n <= 8 ? 0 : 3 * segments * n; }

/// weights[k·n + i] from gram[k·packed_size(n) + p], a thread for each segment.
/// @param scratch  scratch_for_trees(segments, n) doubles
template <class Rule>
__global__ void weigh_segments(Rule rule, const double* gram, const double* leaves, std::size_t segments, std::size_t n,
                               double* weights, double* scratch) {
  static_assert(sizeof(std::size_t) == sizeof(double), "the scratch memory of the trees is counted in doubles");
  const auto k = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (k >= segments) return;
  const gram_view mine(gram + k * packed_size(n), n);
  if (n <= 8) {
    weigh_few<8>(rule, mine, leaves, weights + k * n);
  } else {
    double* const nodes = scratch + 3 * k * n;
    weigh_gram(rule, mine, leaves, weights + k * n, {nodes, nodes + n, reinterpret_cast<std::size_t*>(nodes + 2 * n)});
  }
}

}  // namespace adasum::detail::cuda
