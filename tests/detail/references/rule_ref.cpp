// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Each entry of the table of a rule is the member that it stands for.
#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <adasum/detail/references/rule_ref.hpp>
#include <adasum/rules/adasum_linear.hpp>

#include "support/minimal_types.hpp"

namespace test_of_detail_references_rule_ref {

using namespace adasum;
using namespace adasum::test;

namespace {

struct pair_rule {
  static constexpr inner_products needs = inner_products::accurate;
  std::string name = "pairs";
  int calls = 0;
  std::size_t fallbacks = 11;
  int degree() const { return 2; }
  std::array<double, 2> parameters() const { return {3, 4}; }
  pair_weights operator()(const pair_gram& gram) {
    ++calls;
    return {gram.aa + 10 * gram.ab, gram.bb};
  }
};

struct rule_of_all {
  static constexpr const char* name = "all";
  static constexpr inner_products needs = inner_products::distances;
  static constexpr bool leaves_out_nonfinite = true;
  bool whole = true;
  bool whole_model() const { return whole; }
  void operator()(gram_view gram, std::span<double> weights, std::size_t k) const {
    weights[0] = gram(1, 0) + 10 * static_cast<double>(k);
    weights[1] = gram(1, 1);
  }
};

struct no_products : minimal_pairwise_rule {
  static constexpr inner_products needs = inner_products::none;
  using minimal_pairwise_rule::minimal_pairwise_rule;
};
struct sure_rule {
  static constexpr const char* name = "sure";
  pair_weights operator()(const pair_gram&) const noexcept { return {1, 1}; }
};

const std::array<double, 3> gram{2, 3, 5};

}  // namespace

TEST_CASE("each entry is the member of its name: pairs") {
  pair_rule rule;
  const detail::rule_ref ref(rule);
  CHECK(ref.is_pairwise());
  CHECK(ref.follows_tree());
  CHECK_FALSE(ref.is_left_fold());
  CHECK(ref.needs_gram());
  CHECK(ref.needs_accurate_gram());
  CHECK_FALSE(ref.needs_distances());
  CHECK_FALSE(ref.leaves_out_nonfinite());
  CHECK(ref.may_fail_undecided());
  CHECK(ref.name() == "pairs");
  CHECK_FALSE(ref.weighs_whole_model());
  CHECK(ref.degree() == 2);
  CHECK(ref.fallbacks() == 11);
  CHECK(ref.parameters() == std::vector{3., 4.});
  CHECK(ref.has_state());
  const auto weights = ref(pair_gram{2, 3, 5, 1, 1});
  CHECK(weights.a == 2 + 10 * 3);
  CHECK(weights.b == 5);
  CHECK(rule.calls == 1);

  const auto held = ref.copy_of_rule();
  rule.name = "changed";
  CHECK(ref.name() == "changed");
  CHECK(ref.to(held).name() == "pairs");
  ref.to(held)(pair_gram{});
  CHECK(rule.calls == 1);
  CHECK(ref.is_of_type(ref.to(held)));
}

TEST_CASE("each entry is the member of its name: all at once") {
  rule_of_all rule;
  const detail::rule_ref ref(rule);
  CHECK_FALSE(ref.is_pairwise());
  CHECK_FALSE(ref.follows_tree());
  CHECK(ref.needs_distances());
  CHECK(ref.needs_accurate_gram());
  CHECK(ref.leaves_out_nonfinite());
  CHECK_FALSE(ref.may_fail_undecided());
  CHECK(ref.weighs_whole_model());
  rule.whole = false;
  CHECK_FALSE(ref.weighs_whole_model());
  std::array<double, 2> weights{};
  ref(gram_view(gram.data(), 2), weights, 7);
  CHECK(weights == std::array{3. + 70, 5.});
}

TEST_CASE("what a rule does not have is not there") {
  minimal_pairwise_rule pairs(1);
  const detail::rule_ref of_pairs(pairs);
  CHECK(of_pairs.needs_gram());
  CHECK_FALSE(of_pairs.needs_accurate_gram());
  CHECK_FALSE(of_pairs.weighs_whole_model());
  CHECK(of_pairs.degree() == 1);
  CHECK(of_pairs.fallbacks() == 0);
  CHECK(of_pairs.parameters().empty());
  CHECK_FALSE(of_pairs.has_state());
  minimal_gram_rule all(1);
  const detail::rule_ref of_all(all);
  CHECK_FALSE(of_all.is_pairwise());
  CHECK_FALSE(of_all.needs_distances());
  CHECK_FALSE(of_all.leaves_out_nonfinite());
  CHECK_FALSE(of_all.weighs_whole_model());
  CHECK_FALSE(of_all.is_of_type(of_pairs));
  std::array<double, 2> weights{};
  of_all(gram_view(gram.data(), 2), weights, 7);
  CHECK(weights == std::array{.5, .5});
}

TEST_CASE("whether a rule looks at products, may fail, and follows the tree") {
  no_products none(1);
  CHECK_FALSE(detail::rule_ref(none).needs_gram());
  CHECK_FALSE(detail::rule_ref(none).may_fail_undecided());
  sure_rule sure;
  CHECK(detail::rule_ref(sure).needs_gram());
  CHECK_FALSE(detail::rule_ref(sure).may_fail_undecided());
  rules::adasum_linear linear;
  CHECK(detail::rule_ref(linear).is_pairwise());
  CHECK(detail::rule_ref(linear).is_left_fold());
  CHECK_FALSE(detail::rule_ref(linear).follows_tree());
}

}  // namespace test_of_detail_references_rule_ref
