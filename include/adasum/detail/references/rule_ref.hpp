// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "../../core/concepts.hpp"
#include "../../core/gram.hpp"
#include "../../core/optional_members.hpp"
#include "../../core/tree_order.hpp"
#include "erased.hpp"
#include "refused_members.hpp"

/// A rule, as the engine sees it: a table of functions. The engine is no template.
namespace adasum::detail {

/// The members of a rule (core/concepts.hpp). Of the two ways to weigh, one is null.
struct rule_table {
  pair_weights (*pair)(void* rule, const pair_gram& gram);
  void (*all)(void* rule, gram_view gram, std::span<double> weights, std::size_t segment);
  bool left_fold;
  bool needs_gram;
  bool needs_accurate_gram;
  bool needs_distances;
  bool leaves_out_nonfinite;
  /// Whether a pairwise rule may throw where it also decides that a segment needs the vectors. (For rules of n vectors
  /// at once, that is decided beforehand.)
  bool may_fail_undecided;
  std::string_view (*name)(const void* rule);
  bool (*whole_model)(const void* rule);  ///< or null: it does not weigh the whole model
  int (*degree)(const void* rule);
  std::size_t (*fallbacks)(const void* rule);
  std::vector<double> (*parameters)(const void* rule);
  bool has_state;  ///< or parameters
  owned_object (*copy)(const void* rule);
};

/// A rule of the caller's. Whoever holds it sees to it that the rule lives.
class rule_ref {
 public:
  rule_ref(const rule_table& table, void* rule) : table_(&table), rule_(rule) {}
  template <class Rule>
  requires(!std::is_same_v<std::remove_const_t<Rule>, rule_ref> && rule<std::remove_const_t<Rule>>)
      rule_ref(Rule& rule);

  bool is_pairwise() const { return table_->pair != nullptr; }
  bool is_left_fold() const { return table_->left_fold; }
  /// Whether it is applied along the tree of tree_order.hpp.
  bool follows_tree() const { return is_pairwise() && !table_->left_fold; }
  bool needs_gram() const { return table_->needs_gram; }
  bool needs_accurate_gram() const { return table_->needs_accurate_gram; }
  bool needs_distances() const { return table_->needs_distances; }
  bool leaves_out_nonfinite() const { return table_->leaves_out_nonfinite; }
  bool may_fail_undecided() const { return table_->may_fail_undecided; }
  std::string_view name() const { return table_->name(rule_); }
  /// Whether one set of weights serves all segments.
  bool weighs_whole_model() const { return table_->whole_model != nullptr && table_->whole_model(rule_); }
  int degree() const { return table_->degree(rule_); }
  std::size_t fallbacks() const { return table_->fallbacks(rule_); }
  std::vector<double> parameters() const { return table_->parameters(rule_); }
  bool has_state() const { return table_->has_state; }
  bool is_of_type(const rule_ref& other) const { return table_ == other.table_; }
  /// A copy of the rule as it is now, with its state, for whoever outlives it, and the reference to that.
  owned_object copy_of_rule() const { return table_->copy(rule_); }
  rule_ref to(const owned_object& copied) const { return {*table_, copied.get()}; }

  /// @pre is_pairwise()
  pair_weights operator()(const pair_gram& gram) const { return table_->pair(rule_, gram); }
  /// @pre not is_pairwise()
  void operator()(gram_view gram, std::span<double> weights, std::size_t segment) const {
    table_->all(rule_, gram, weights, segment);
  }

 private:
  const rule_table* table_;
  void* rule_;
};

// ── from the concept to the table ──

template <class Rule>
concept weighs_without_failing = requires(Rule& rule, const pair_gram& gram) {
  { rule(gram) } noexcept;
};

template <class Rule>
concept takes_number_of_segment =
    requires(Rule& rule, gram_view gram, std::span<double> weights, std::size_t k) { rule(gram, weights, k); };

/// @tparam Object  what the reference points to: the rule itself or, as rules::any_rule, what holds it
template <rule Rule, class Object = Rule>
struct functions_of_rule {
  template <class Held>  // see functions_of_space
  requires(!std::is_const_v<Held>)
  static Rule& of(Held* rule) {
    if constexpr (std::is_same_v<Object, Rule>)
      return *static_cast<Rule*>(rule);
    else
      return static_cast<Object*>(rule)->template held<Rule>();
  }
  template <class Held>
  static const Rule& of(const Held* rule) {
    return of(const_cast<Held*>(rule));
  }
};

/// Neither const, so that no linker takes the tables of two types for one, since plans are told apart by them; nor inline, so
/// that they can be compiled elsewhere.
template <rule Rule, class Object = Rule, class Functions = functions_of_rule<Rule, Object>>
rule_table table_of_rule{
    .pair = entry_if<pairwise_rule<Rule>, decltype(rule_table::pair)>(
        [](auto* rule, const pair_gram& gram) -> pair_weights { return Functions::of(rule)(gram); }),
    .all = entry_if<!pairwise_rule<Rule>, decltype(rule_table::all)>(
        [](auto* rule, gram_view gram, std::span<double> weights, std::size_t segment) {
          auto& held = Functions::of(rule);
          if constexpr (takes_number_of_segment<Rule>)
            held(gram, weights, segment);
          else
            held(gram, weights);
        }),
    .left_fold = pairwise_rule<Rule> && !tree_rule<Rule>,
    .needs_gram = needs_gram<Rule>,
    .needs_accurate_gram = needs_accurate_gram<Rule>,
    .needs_distances = needs_distances<Rule>,
    .leaves_out_nonfinite = leaves_out_nonfinite<Rule> && !pairwise_rule<Rule>,
    .may_fail_undecided = pairwise_rule<Rule> && needs_gram<Rule> && !weighs_without_failing<Rule>,
    .name = [](const void* rule) -> std::string_view { return Functions::of(rule).name; },
    .whole_model = entry_if<says_whether_whole_model<Rule>, decltype(rule_table::whole_model)>(
        [](const auto* rule) -> bool { return Functions::of(rule).whole_model(); }),
    .degree = [](const void* rule) { return adasum::degree_of(Functions::of(rule)); },
    .fallbacks = [](const void* rule) { return adasum::fallbacks_of(Functions::of(rule)); },
    .parameters = [](const void* rule) { return adasum::parameters_of(Functions::of(rule)); },
    .has_state = !std::is_empty_v<Rule>,
    .copy = [](const void* rule) { return own(Object(*static_cast<const Object*>(rule))); }};

/// The table of a rule's type. An any_rule has a function of this name, for the rule that it holds.
template <rule Rule>
const rule_table& table_for(const Rule&) {
  return table_of_rule<Rule>;
}

template <class Rule>
requires(!std::is_same_v<std::remove_const_t<Rule>, rule_ref> &&
         rule<std::remove_const_t<Rule>>) rule_ref::rule_ref(Rule& rule)
    : rule_ref(table_for(rule), const_cast<std::remove_const_t<Rule>*>(&rule)) {
  refuse_members_of_rule<std::remove_const_t<Rule>>();
}

// ── weights ──

// For weigh_along_tree, of a rule that is known at run time.
template <class Visitor>
void for_each_merge_under(const rule_ref& rule, std::size_t n, Visitor&& visit) {
  if (rule.is_left_fold())
    for_each_left_fold(n, visit);
  else
    for_each_merge(n, visit);
}
inline bool looks_at_gram(const rule_ref& rule) { return rule.needs_gram(); }

/// Weights under any rule where nobody can look at the vectors: what nearly cancels along the tree counts as zero.
void weigh_by_products(const rule_ref& rule, gram_view gram, std::span<double> weights, std::size_t segment);

}  // namespace adasum::detail

#if ADASUM_DEFINITIONS
#include "../../core/weigh.hpp"

namespace adasum::detail {

ADASUM_INLINE void weigh_by_products(const rule_ref& rule, gram_view gram, std::span<double> weights,
                                     std::size_t segment) {
  if (!rule.is_pairwise()) return rule(gram, weights, segment);
  const std::vector<std::size_t> leaves(gram.size(), 1);
  weigh_scratch scratch(gram.size());
  weigh_along_tree(rule, gram, leaves.data(), weights.data(), scratch,
                   {vanishing_threshold, vanishing_threshold, largest_safe_square}, cancelled_node::is_zero);
}

}  // namespace adasum::detail
#endif
