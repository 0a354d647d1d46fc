// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rules that a text names, those that need Eigen included, with any parameters, among up to three ranks of which one may name
// another: the result goes to all of them, or in parts. Every rank gets a result or an error of the library's; where all
// give the same, all get the same bits, twice; and the result is the sum that the report says.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <adasum/adasum.hpp>
#include <adasum/rules/eigen/named.hpp>

#include "input.hpp"
#include "order.hpp"
#include "ranks.hpp"

namespace {

using namespace adasum::fuzz;

struct rule_order {
  std::string rule;
  bool in_parts = false;
  std::size_t length = 0;
  std::vector<long long> lengths;
  adasum::options choices{};
};

/// A rule with some of its parameters, which the fuzzer changes byte by byte, or any text.
std::string some_rule(input& in) {
  constexpr const char* texts[] = {"adasum",
                                   "adasum_linear",
                                   "sum",
                                   "unit_mean",
                                   "adacons:momentum=0.5,epsilon=1e-9,guard=0.1",
                                   "multi_krum:byzantine=1,selected=1",
                                   "geometric_median:smoothing=1e-6,iterations=9,per_segment=no",
                                   "centred_clipping:radius=2,iterations=3",
                                   "gradient_agreement_filtering:threshold=0.9",
                                   "pcgrad:seed=3,average=yes",
                                   "gradvac:beta=0.5,target=0.2,seed=7",
                                   "min_norm:tolerance=1e-9",
                                   "imtl_g:guard=0.01",
                                   "aligned_mtl",
                                   "upgrad:per_segment=yes",
                                   "dualproj",
                                   "conflict_free:guard=1e-3",
                                   "cagrad:c=0.4,per_segment=no",
                                   "nash_mtl:scale=mean_norm",
                                   "fairgrad:alpha=2",
                                   "nearest_neighbour_mixing:byzantine=0,rule=upgrad:per_segment=no",
                                   "mean"};
  std::string text = in.up_to(7) == 0 ? in.text() : texts[in.up_to(std::size(texts) - 1)];
  // A parameter's value is replaced: the rule itself is to see numbers of any size.
  if (const auto value = text.find_last_of('='); value != std::string::npos && in.flag())
    text.replace(value + 1, std::string::npos, in.text());
  if (const auto place = in.up_to(63); place < text.size() && in.up_to(3) == 0)
    text[place] = static_cast<char>(in.number<std::uint8_t>());
  return text;
}

rule_order some_rule_order(input& in) {
  rule_order found;
  found.rule = some_rule(in);
  found.in_parts = in.flag();
  found.length = in.up_to(40);
  found.lengths = some_lengths(in, in.up_to(4), static_cast<long long>(found.length));
  found.choices = some_options(in);
  return found;
}

struct rule_outcome : outcome {
  adasum::report found;
};

rule_outcome carry_out(const rule_order& what, const adasum::thread_communicator& comm, std::vector<double> gradient) {
  const adasum::serial_space exec;
  try {
    auto rule = adasum::rules::named_with_eigen(what.rule);
    const auto segs = segments_of(gradient.size(), what.lengths);
    rule_outcome got{{true, {}, {0, gradient.size()}}, {}};
    if (what.in_parts) {
      got.valid = adasum::part_of_rank(gradient.size(), comm.size(), comm.rank());
      got.found = adasum::combine_reduce_scatter(exec, comm, gradient, rule, segs, what.choices);
    } else {
      got.found = adasum::combine_allreduce(exec, comm, gradient, rule, segs, what.choices);
    }
    got.values = std::move(gradient);
    return got;
  } catch (const adasum::error&) {
    return {};
  }
}

/// result = Σ cᵢ gᵢ, up to rounding. The numbers are small integers, and weights as large as the parameters make them.
void require_sum(const rule_outcome& got, const std::vector<std::vector<double>>& gradients,
                 const std::vector<long long>& lengths, double rounding) {
  std::size_t x = 0;
  for (std::size_t k = 0; k < lengths.size(); ++k)
    for (const auto end = x + static_cast<std::size_t>(lengths[k]); x < end; ++x) {
      if (x < got.valid.begin || x >= got.valid.end) continue;
      double sum = 0, mass = 0;
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        sum += got.found.weight(i, k) * gradients[i][x];
        mass += std::abs(got.found.weight(i, k)) * std::abs(gradients[i][x]);
      }
      if (std::isfinite(mass))
        require(std::abs(sum - got.values[x]) <= rounding * (1 + mass), "the result is the sum that the report says");
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(data, size);
  const auto ranks = 1 + in.up_to(2);
  const auto common = some_rule_order(in);
  std::vector<rule_order> orders(ranks, common);
  const bool one_differs = in.up_to(3) == 0;
  if (one_differs) orders[in.up_to(ranks - 1)] = some_rule_order(in);

  const bool odd_numbers = in.flag();
  std::vector<std::vector<double>> gradients;
  for (const auto& one : orders) gradients.push_back(some_gradient<double>(in, one.length, odd_numbers));

  const auto run = [&] {
    return on_each_rank(ranks, [&](std::size_t r, const adasum::thread_communicator& comm) {
      return carry_out(orders[r], comm, gradients[r]);
    });
  };
  const auto got = run();
  if (one_differs) return 0;
  require_same(got);
  const auto again = run();
  auto lengths = common.lengths;
  if (lengths.empty()) lengths.push_back(static_cast<long long>(common.length));
  for (std::size_t r = 0; r < ranks; ++r) {
    require(got[r].is_result == again[r].is_result, "a second call gives a result where the first does");
    if (!got[r].is_result) continue;
    require(same_bits(got[r], again[r]), "a second call gives the same bits");
    if (!odd_numbers) require_sum(got[r], gradients, lengths, 1e-9);
  }
  return 0;
}
