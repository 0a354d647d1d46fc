// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls of one process with arguments of any kind: pairs, trees, also by nodes, every rule with any parameters, and sums one
// after another. They give a result or an error of the library's, which leaves the output as it was; nothing is written
// elsewhere; several threads get the bits of one; and good input gives what the definition does, in long double.
#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <adasum/adasum.hpp>

#include "../support/bits.hpp"
#include "../support/oracle.hpp"
#include "../support/oracle_errors.hpp"
#include "input.hpp"
#include "order.hpp"

namespace {

using namespace adasum::fuzz;
namespace rules = adasum::rules;
using adasum::test::same_bits;

using any_rule =
    std::variant<rules::adasum, rules::mean, rules::sum, rules::adasum_linear, rules::unit_mean, rules::adacons,
                 rules::centred_clipping, rules::geometric_median, rules::gradient_agreement_filtering, rules::gradvac,
                 rules::multi_krum, rules::pcgrad, rules::nearest_neighbour_mixing<rules::mean>>;

/// A number that a parameter may be, or any.
double some_parameter(input& in) {
  return in.up_to(2) == 0 ? in.number<double>() : static_cast<double>(in.up_to(8)) / 8;
}

any_rule some_rule(input& in) {
  const double x = some_parameter(in), y = some_parameter(in);
  const bool whole = in.flag();
  const auto few = in.up_to(9);
  switch (in.up_to(12)) {
    case 0: return rules::adasum{};
    case 1: return rules::mean{};
    case 2: return rules::sum{};
    case 3: return rules::adasum_linear{};
    case 4: return rules::unit_mean{};
    case 5:
      return rules::adacons{.momentum = x,
                            .epsilon = y,
                            .scale = static_cast<rules::adacons::scaling>(few % 2),
                            .per_segment = !whole,
                            .guard = some_parameter(in),
                            .unsorting = static_cast<rules::adacons::unsort>(few / 2 % 2)};
    case 6: return rules::centred_clipping{.radius = x, .iterations = few, .per_segment = !whole};
    case 7: return rules::geometric_median{.smoothing = x, .iterations = few, .per_segment = !whole};
    case 8: {
      rules::gradient_agreement_filtering rule;
      rule.threshold = x;
      rule.per_segment = !whole;
      return rule;
    }
    case 9: {
      rules::gradvac rule;
      rule.beta = x, rule.target = y, rule.epsilon = some_parameter(in), rule.seed = few;
      rule.average = in.flag(), rule.per_segment = !whole;
      return rule;
    }
    case 10: {
      rules::multi_krum rule;
      rule.byzantine = in.up_to(4) == 0 ? in.number<std::size_t>() : few;
      rule.selected = in.up_to(4) == 0 ? in.number<std::size_t>() : in.up_to(9);
      rule.per_segment = !whole;
      return rule;
    }
    case 11: {
      rules::pcgrad rule;
      rule.seed = few, rule.average = in.flag(), rule.per_segment = !whole;
      return rule;
    }
    default: {
      rules::nearest_neighbour_mixing<rules::mean> rule;
      rule.byzantine = in.up_to(4) == 0 ? in.number<std::size_t>() : few;
      return rule;
    }
  }
}

/// The output between elements that no call may change.
template <class T>
class guarded {
 public:
  explicit guarded(std::size_t length) : all_(length + 2 * margin, T(77)) {}

  std::span<T> span() { return std::span(all_).subspan(margin, all_.size() - 2 * margin); }
  std::vector<T> values() {
    const auto inside = span();
    return {inside.begin(), inside.end()};
  }
  bool is_untouched() {
    return std::ranges::all_of(all_, [](T x) { return x == T(77); });
  }
  void require_margins() const {
    for (std::size_t x = 0; x < margin; ++x)
      require(all_[x] == T(77) && all_[all_.size() - 1 - x] == T(77), "nothing is written beside the output");
  }

 private:
  static constexpr std::size_t margin = 64;
  std::vector<T> all_;
};

struct local_order {
  std::size_t what = 0;
  std::size_t length = 0;
  std::vector<long long> lengths;
  std::vector<int> nodes;
  any_rule rule;
  adasum::options choices{};
};

template <class T>
struct local_result {
  bool is_result = false;
  std::vector<T> values;
};

template <class T, class Space>
local_result<T> carry_out(const Space& exec, const local_order& what, const std::vector<std::vector<T>>& gradients) {
  guarded<T> out(what.length);
  const auto unchanged = gradients;
  try {
    const adasum::segments segs = what.lengths.empty() ? adasum::segments{what.length}
                                                       : adasum::segments(what.lengths.begin(), what.lengths.end());
    switch (what.what) {
      case 0: adasum::adasum_pair(exec, gradients.front(), gradients.back(), out.span(), segs); break;
      case 1: adasum::adasum_tree(exec, gradients, out.span(), segs); break;
      case 2: adasum::adasum_tree_by_node(exec, gradients, adasum::node_groups(what.nodes), out.span(), segs); break;
      case 3: {
        if (segs.total() > 1'000'000) return {};  // sanitizers end a program that asks for too much memory
        auto total = adasum::plan_accumulator<T>(exec, segs);
        for (const auto& one : gradients) total.add(one);
        require(total.count() == gradients.size(), "what was added is counted");
        std::ranges::copy(total.gradient(), out.span().begin());
        break;
      }
      default:
        std::visit([&](auto rule) { adasum::combine(exec, gradients, out.span(), rule, segs, what.choices); },
                   what.rule);
    }
  } catch (const adasum::error&) {
    require(out.is_untouched(), "where there is an error, the output is as it was");
    return {};
  }
  out.require_margins();
  for (std::size_t i = 0; i < gradients.size(); ++i)
    require(same_bits(gradients[i], unchanged[i]), "gradients are only read");
  return {true, out.values()};
}

/// The sum of gradients one after another, each result rounded to T.
template <class Merge>
adasum::test::oracle_node chain(const std::vector<adasum::test::oracle_node>& leaves, const Merge& merge) {
  auto sum = leaves.front();
  for (std::size_t i = 1; i < leaves.size(); ++i) sum = merge(sum, leaves[i]);
  return sum;
}

/// @pre small whole numbers, and segments that add up
template <class T>
void require_right(const local_order& what, const std::vector<std::vector<T>>& gradients,
                   const std::vector<T>& values) {
  const adasum::segments cut =
      what.lengths.empty() ? adasum::segments{what.length} : adasum::segments(what.lengths.begin(), what.lengths.end());
  const auto check = [&](auto rule, const auto& inputs, const auto& tree) {
    const auto oracle = adasum::test::oracle_with_errors<T>(rule, inputs, cut, tree);
    auto bounds = oracle.gram_error;
    for (std::size_t k = 0; k < bounds.size(); ++k) bounds[k] += oracle.pairwise_error[k];
    require(adasum::test::worst_error_over_bound(values, oracle.values, bounds, cut) <= 1,
            "the result is what the definition gives");
  };
  const auto in_a_chain = [](const auto& leaves, const auto& merge) { return chain(leaves, merge); };
  const adasum::test::tree_of_all usual;
  switch (what.what) {
    case 0: return check(rules::adasum{}, std::vector{gradients.front(), gradients.back()}, usual);
    case 1: return check(rules::adasum{}, gradients, usual);
    case 2: {
      const adasum::node_groups groups(what.nodes);
      return check(rules::adasum{}, gradients, [&](const auto& leaves, const auto& merge) {
        std::vector<adasum::test::oracle_node> of_nodes;
        for (std::size_t node = 0; node < groups.size(); ++node) {
          std::vector<adasum::test::oracle_node> members;
          for (const int rank : groups.ranks(node)) members.push_back(leaves[static_cast<std::size_t>(rank)]);
          of_nodes.push_back(adasum::test::oracle_tree(std::move(members), merge));
        }
        return adasum::test::oracle_tree(std::move(of_nodes), merge);
      });
    }
    case 3: return check(rules::adasum{}, gradients, in_a_chain);
    default:
      if (what.rule.index() == 0) check(rules::adasum{}, gradients, usual);
      if (what.rule.index() == 1) check(rules::mean{}, gradients, usual);
      if (what.rule.index() == 2) check(rules::sum{}, gradients, usual);
      if (what.rule.index() == 3) check(rules::adasum{}, gradients, in_a_chain);
  }
}

template <class T>
void run(input& in, const local_order& what, std::size_t count, bool differs) {
  const bool odd_numbers = in.flag();
  std::vector<std::vector<T>> gradients;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<T> gradient(differs && i + 1 == count ? what.length / 2 : what.length);
    // A long gradient repeats its first elements.
    for (std::size_t x = 0; x < gradient.size(); ++x)
      gradient[x] = x >= 64 ? gradient[x % 61] : odd_numbers ? in.number<T>() : static_cast<T>(in.up_to(9)) - 4;
    gradients.push_back(std::move(gradient));
  }
  if (gradients.empty() && (what.what == 0 || what.what == 3)) return;
  const auto result = carry_out<T>(adasum::serial_space{}, what, gradients);
  const auto by_threads = carry_out<T>(adasum::threads_space{2}, what, gradients);
  require(result.is_result == by_threads.is_result, "several threads accept what one does");
  require(same_bits(result.values, by_threads.values), "several threads get the bits of one");

  long long rest = static_cast<long long>(what.length);
  bool adds_up = true;
  for (const auto length : what.lengths) {
    adds_up = adds_up && length >= 0 && length <= rest;
    rest -= adds_up ? length : 0;
  }
  adds_up = adds_up && (what.lengths.empty() || rest == 0);
  const bool good_choices = what.what < 4 || (what.choices.nonfinite <= adasum::nonfinite_policy::raise &&
                                              what.choices.measure <= adasum::measuring::when_needed &&
                                              what.choices.wire == adasum::wire_format::same);
  const bool good_nodes = what.what != 2 || what.nodes.size() == count;
  if (odd_numbers || differs || count == 0 || !adds_up || !good_choices || !good_nodes) return;
  if (what.what == 4 && what.rule.index() > 4) return;  // parameters that the rule may refuse
  require(result.is_result, "good input is not refused");
  require_right<T>(what, gradients, result.values);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(data, size);
  local_order what;
  what.what = in.up_to(4);
  const auto count = in.up_to(9);
  what.length = in.up_to(40) * (in.up_to(31) == 0 ? 1000 : 1);  // long enough for several threads
  what.lengths = some_lengths(in, in.up_to(4), static_cast<long long>(what.length));
  for (std::size_t i = in.up_to(9) == 0 ? in.up_to(5) : count; i > 0; --i)
    what.nodes.push_back(in.up_to(9) == 0 ? in.number<int>() : static_cast<int>(in.up_to(2)));
  what.rule = some_rule(in);
  what.choices = some_options(in);
  const bool differs = in.up_to(9) == 0 && count > 1;
  if (in.flag())
    run<float>(in, what, count, differs);
  else
    run<double>(in, what, count, differs);
  return 0;
}
